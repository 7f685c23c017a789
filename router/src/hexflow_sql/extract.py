"""From a model's text to a statement, or to the reason why there is none.

Containers first (answer tags, JSON, the last fenced block), then the longest stretch that parses as a
query. A statement is returned as it was written: newlines kept, quotes untouched. Whether it may run is
the guard's business.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from hexflow_sql.parser import parse_query

MAX_PARSED = 10_000
"""Most characters of one text that are given to the parser, all tries together: it runs on the event loop."""

MAX_OBJECTS = 60
"""Most places of a text that are tried as the beginning of JSON."""

_STATEMENT_KEYS = ("sql", "SQL", "query", "statement", "final_sql", "answer")
_REFUSAL_KEYS = ("unanswerable", "refusal")
_ANSWER_TAGS = ("answer", "final_answer", "sql", "final_sql", "result")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*$", re.MULTILINE)
_INLINE_FENCE = re.compile(r"```(?=\S)([^`\n][^`]*?)```")
_LANGUAGES = frozenset({"sql", "sqlite", "postgresql", "postgres", "mysql", "duckdb", "json"})
_REASONING = re.compile(r"(?i:</?(?:think|thinking|thought|reasoning)>)|\[/?THINK\]")
_START = re.compile(r"\b(?:WITH|SELECT)\b|\(\s*SELECT\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """Say what a text held: a statement, a refusal, or neither and why."""

    sql: str | None = None
    refusal: str | None = None
    problem: str | None = None


def extract(text: str, *, dialect: str, finish_reason: str = "stop") -> Extracted:
    """Find the statement a model's text ends up with.

    After ``finish_reason="length"`` only what is closed counts (a closed fence, tag or JSON, or a statement
    with its semicolon): half a condition may still parse.
    """
    cut = finish_reason == "length"
    answer = without_reasoning(text)
    if answer is None:
        return Extracted(problem="the text ends inside its reasoning")
    parser = _Parser(dialect)
    refusal = _tag(answer, "unanswerable")
    tagged = next((body for tag in _ANSWER_TAGS if (body := _tag(answer, tag)) is not None), None)
    if tagged is not None:
        inner = _from_containers(tagged, parser)
        if inner is not None:
            return inner
        if parser.reads(tagged):
            return Extracted(sql=_trimmed(tagged))
    found = _from_containers(answer, parser)
    if found is not None and found.sql is not None:
        return found
    if refusal is not None:
        return Extracted(refusal=" ".join(refusal.split()) or "no reason given")
    if found is not None:
        return found
    bare = _longest_parse(_before_open_fence(answer) if cut else answer, parser, closed_only=cut)
    if bare is not None:
        return Extracted(sql=bare)
    if cut:
        return Extracted(problem="the text was cut off before its statement ended")
    return Extracted(problem="the text holds no SQL statement")


def without_reasoning(text: str) -> str | None:
    """Drop ``<think>…</think>`` and its like, with or without its opening; None where it never closes."""
    after, is_open = 0, False
    for mark in _REASONING.finditer(text):
        is_open = "/" not in mark.group()
        after = mark.end()
    return None if is_open else text[after:]


def read_json(text: str) -> Any:
    """Read the JSON of a model's text, bare, fenced or amid prose: the last object that stands alone.

    Returns None where there is none.
    """
    answer = without_reasoning(text)
    if answer is None:
        return None
    for piece in (answer, *(body for _, body in reversed(list(_fences(answer))))):
        try:
            return json.loads(piece)
        except (ValueError, RecursionError):
            continue
    return _last_object(answer)


class _Parser:
    """Ask whether stretches of one text are queries, until it has parsed enough."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._left = MAX_PARSED

    @property
    def tired(self) -> bool:
        return self._left <= 0

    def reads(self, stretch: str, *, tables: bool = False) -> bool:
        """Say whether a stretch is one query, with ``tables`` over at least one table."""
        trimmed = _trimmed(stretch)
        self._left -= len(trimmed) + 1
        tree = None if self.tired else parse_query(trimmed, dialect=self._dialect)
        return tree is not None and (not tables or tree.find(exp.Table) is not None)


def _from_containers(text: str, parser: _Parser) -> Extracted | None:
    data = read_json(text) if "{" in text else None
    named = _texts_of(data, _STATEMENT_KEYS)
    for statement in map(_unfenced, named):
        if parser.reads(statement):
            return Extracted(sql=statement)
    blocks = [(language, body) for language, body in _fences(text) if body.strip() and language != "json"]
    for _, body in reversed(blocks):
        if parser.reads(body):
            return Extracted(sql=_trimmed(body))
    # What means to be a statement and is none: the guard's refusal says what is wrong with it.
    meant = [body for language, body in reversed(blocks) if language in _LANGUAGES]
    if meant:
        return Extracted(sql=_trimmed(meant[0]))
    if named:
        return Extracted(sql=_unfenced(named[0]))
    refusals = _texts_of(data, _REFUSAL_KEYS)
    return Extracted(refusal=" ".join(refusals[0].split())) if refusals else None


def _texts_of(data: object, keys: Sequence[str]) -> list[str]:
    values = [data.get(key) for key in keys] if isinstance(data, Mapping) else []
    return [value for value in values if isinstance(value, str) and value.strip()]


def _fences(text: str) -> Iterator[tuple[str, str]]:
    """Yield language and body of every closed fenced block."""
    opened: tuple[str, str, int] | None = None
    for match in _FENCE.finditer(text):
        mark, language = match.group(1), match.group(2).lower()
        if opened is None:
            opened = (mark, language, match.end())
        elif mark[0] == opened[0][0] and len(mark) >= len(opened[0]) and not language:
            yield opened[1], text[opened[2] : match.start()].strip("\n")
            opened = None
    yield from _inline_fences(text)


def _inline_fences(text: str) -> Iterator[tuple[str, str]]:
    """Yield blocks whose fences share a line with their body: ```` ```sql SELECT 1``` ````."""
    for match in _INLINE_FENCE.finditer(text):
        if match.group(1).splitlines()[0].strip().lower() in _LANGUAGES:
            continue  # a fence of its own lines
        first, _, rest = match.group(1).partition(" ")
        named = first.lower() in _LANGUAGES
        yield (first.lower(), rest.strip()) if named else ("", match.group(1).strip())


def _before_open_fence(text: str) -> str:
    opens = list(_FENCE.finditer(text))
    return text[: opens[-1].start()] if len(opens) % 2 else text


def _tag(text: str, name: str) -> str | None:
    """Return the body of the last closed tag of this name."""
    lowered = text.lower()
    end = lowered.rfind(f"</{name}>")
    start = lowered.rfind(f"<{name}>", 0, end) if end >= 0 else -1
    return text[start + len(name) + 2 : end].strip() if start >= 0 else None


def _last_object(text: str) -> Any:
    decoder = json.JSONDecoder()
    found: Any = None
    place, tries = text.find("{"), 0
    while place >= 0 and tries < MAX_OBJECTS:
        tries += 1
        try:
            found, length = decoder.raw_decode(text[place:])
            place = text.find("{", place + length)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
    return found


def _longest_parse(text: str, parser: _Parser, *, closed_only: bool) -> str | None:
    """Find the longest stretch from WITH or SELECT that is one query over at least one table.

    Lines that begin so come first: amid a line the words are as often English.
    """
    best, begin, past = "", 0, 0
    starts = [match.start() for match in _START.finditer(text)]
    for start in sorted(starts, key=lambda start: start > 0 and text[start - 1] != "\n"):
        if begin <= start < past:
            continue  # inside a stretch that parsed
        rest = text[start : start + MAX_PARSED]
        for end in _ends(rest):
            if end <= len(best):
                break
            if parser.tired:
                return best or None
            if closed_only and not rest[:end].rstrip().endswith(";"):
                continue
            if parser.reads(rest[:end], tables=True):
                best, begin, past = _trimmed(rest[:end]), start, start + end
                break
    return best or None


def _ends(text: str) -> list[int]:
    """List where a statement may end, farthest first: the text's end, semicolons, lines, sentences, inline code."""
    ends = {len(text)}
    ends.update(match.end() for match in re.finditer(r";", text))
    ends.update(match.start() for match in re.finditer(r"[\n`]", text))
    ends.update(match.start() for match in re.finditer(r"[.!?](?=\s|$)", text))
    return sorted(ends, reverse=True)


def _unfenced(text: str) -> str:
    blocks = [body for _, body in _fences(text) if body.strip()]
    return _trimmed(blocks[-1] if blocks else text)


def _trimmed(text: str) -> str:
    return text.strip().rstrip("; \n\t\r")
