"""Which texts of a question occur in the database: looked up without a model.

The index holds the distinct short texts of the cells, up to a cap, and finds those that a question mentions.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_VALUE_CHARACTERS = 60
"""Longer texts are prose, not names that a question would quote."""

_WORD = re.compile(r"\w+", re.UNICODE)
_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "in",
        "is",
        "it",
        "its",
        "many",
        "me",
        "much",
        "name",
        "number",
        "of",
        "on",
        "or",
        "our",
        "show",
        "than",
        "that",
        "the",
        "their",
        "them",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "us",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "with",
        "yes",
        "no",
        "true",
        "false",
        "new",
        "all",
        "any",
        "each",
        "per",
        "total",
        "list",
        "give",
        "first",
        "last",
        "top",
    ]
)


class ValueMatch(NamedTuple):
    """Say that a text of the question stands in a column, spelled as it is there."""

    table: str
    column: str
    value: str


@dataclass(frozen=True, slots=True)
class ValueIndex:
    """Find values by the words they are made of."""

    places: dict[tuple[str, ...], list[ValueMatch]] = field(default_factory=dict)
    longest: int = 0
    """Words of the longest value."""
    covered: frozenset[tuple[str, str]] = frozenset()
    """Table and column, folded, of the columns whose texts are all here."""

    @classmethod
    def build(cls, found: Iterable[ValueMatch], *, covered: Iterable[tuple[str, str]] = ()) -> "ValueIndex":
        """Index matches by their words, ignoring case and punctuation.

        ``covered`` names the columns (table, column) that were read to their end.
        """
        places: defaultdict[tuple[str, ...], list[ValueMatch]] = defaultdict(list)
        longest = 0
        for match in found:
            words = _words(match.value)
            if words and len(match.value) <= MAX_VALUE_CHARACTERS:
                places[words].append(match)
                longest = max(longest, len(words))
        folded = frozenset((table.casefold(), column.casefold()) for table, column in covered)
        return cls(places=dict(places), longest=longest, covered=folded)

    def mentioned(self, text: str, *, most: int = 20) -> tuple[ValueMatch, ...]:
        """Find the values that a text mentions, longest first; single common words do not count.

        A plural of one letter (``returns`` for ``return``) still matches.
        """
        words = _words(text)
        found: list[ValueMatch] = []
        taken: set[int] = set()
        for length in range(min(self.longest, len(words)), 0, -1):
            for start in range(len(words) - length + 1):
                if taken.intersection(range(start, start + length)):
                    continue
                matches = self._at(words[start : start + length])
                if matches:
                    found.extend(matches)
                    taken.update(range(start, start + length))
        unique = dict.fromkeys(found)
        return tuple(unique)[:most]

    def covers(self, table: str, column: str) -> bool:
        """Say whether all texts of a column are in the index."""
        return (table.casefold(), column.casefold()) in self.covered

    def contains(self, table: str, column: str, value: str) -> bool:
        """Say whether the very value stands in the column."""
        return any(
            match.value == value
            for match in self.places.get(_words(value), ())
            if match.table.casefold() == table.casefold() and match.column.casefold() == column.casefold()
        )

    def _at(self, words: tuple[str, ...]) -> list[ValueMatch]:
        if len(words) == 1 and (words[0] in _COMMON or len(words[0]) < 2):
            return []
        exact = self.places.get(words)
        if exact:
            return exact
        last = words[-1]
        if last.endswith("s") and len(last) > 3:
            return self.places.get((*words[:-1], last[:-1]), [])
        return []


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
