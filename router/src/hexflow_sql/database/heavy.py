"""SQLite functions whose single call may take minutes, under a cost limit.

SQLite looks at its interrupt flag between steps only. ``instr``, ``replace`` and ``trim`` take time that
grows with the product of two lengths, ``printf`` with a number in its format; so a statement that mentions
one of them gets a version that checks the cost and the clock first, and then lets SQLite itself compute.
"""

import re
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

MOST_PRODUCT = 50_000_000
"""Most byte comparisons of one call: a few milliseconds."""

MOST_WIDTH = 10_000
"""Widest field of one ``printf`` directive."""

MOST_FORMAT = 10_000
"""Longest ``printf`` format."""

_NUMBER = re.compile(r"\d+")


class Heavy(NamedTuple):
    """Name a function, its number of arguments (-1: any), what checks a call, and what it is on texts."""

    name: str
    arguments: int
    check: Callable[[Sequence[Any]], bool]
    on_texts: Callable[..., Any] | None = None
    """The same in Python, where all arguments are texts: ten times as quick as asking SQLite."""


def _product(arguments: Sequence[Any]) -> bool:
    return _length(arguments[0]) * _length(arguments[1]) <= MOST_PRODUCT


def _format(arguments: Sequence[Any]) -> bool:
    template = arguments[0] if arguments else ""
    if not isinstance(template, str):
        return True
    widths = _NUMBER.findall(template)
    return (
        len(template) <= MOST_FORMAT
        and not ("*" in template and "%" in template)
        and all(len(width) <= 5 and int(width) <= MOST_WIDTH for width in widths)
    )


HEAVY = (
    Heavy("instr", 2, _product, lambda text, part: text.find(part) + 1),
    Heavy("replace", 3, _product, lambda text, old, new: text.replace(old, new) if old else text),
    Heavy("trim", 2, _product, str.strip),
    Heavy("ltrim", 2, _product, str.lstrip),
    Heavy("rtrim", 2, _product, str.rstrip),
    Heavy("printf", -1, _format),
    Heavy("format", -1, _format),
)


class HeavyCall(Exception):
    """A call would take too long."""


def mentioned(sql: str) -> list[Heavy]:
    """List the heavy functions whose names occur in a statement."""
    folded = sql.casefold()
    return [heavy for heavy in HEAVY if heavy.name in folded]


def bounded(
    heavy: Heavy, *, expired: Callable[[], int], scratch: Callable[[], sqlite3.Connection]
) -> Callable[..., Any]:
    """Make a version that checks before it computes; ``scratch`` gives a connection without tables for that."""
    call_text = f"SELECT {heavy.name}({{}})"  # our own names

    def call(*arguments: Any) -> Any:
        if expired() or not heavy.check(arguments):
            raise HeavyCall(heavy.name)
        if heavy.on_texts is not None and all(isinstance(argument, str) for argument in arguments):
            return heavy.on_texts(*arguments)
        marks = ", ".join("?" * len(arguments))
        return scratch().execute(call_text.format(marks), arguments).fetchone()[0]

    return call


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes) else 20
