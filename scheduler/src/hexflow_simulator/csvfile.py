"""A CSV under a line of column names: its rows with the numbers of their lines, and complaints that name the line."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.lines import text_lines

_SHOWN = 8
"""Column names in a complaint."""
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line and the fields of each row: first the column names, without blanks around them.

    Raises InvalidTrace for what is no CSV, for names that are missing or there twice, and for a row that is longer than
    they are, since then nobody knows what stands where.
    """
    rows = _rows(path)
    number, header = next(rows)
    names = [name.strip() for name in header]
    _check_names(Where(str(path), number), names)
    yield number, names
    width = len(names)
    for number, row in rows:
        if len(row) > width and any(field.strip() for field in row[width:]):
            raise InvalidTrace(
                Where(str(path), number),
                f"{len(row)} fields under {width} column names",
                "put a field with a comma in it into double quotes, and write decimals with a point",
            )
        yield number, row


def field(where: Where, row: Sequence[str], place: int, name: str) -> str:
    """Return a field without blanks around it; raises InvalidTrace where there is none."""
    if place >= len(row) or not row[place].strip():
        raise InvalidTrace(where, f"no value for {name}", "fill it in, or leave the line out")
    return row[place].strip()


def listed(names: Sequence[str]) -> str:
    """Write column names for a complaint: the first ones, and how many there are."""
    shown = ", ".join(name[:40] for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} … ({len(names):,} columns)"


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    first = last = 0
    """Lines at which the row that is being read begins, and ends by now: a quoted field may go over several."""

    def lines() -> Iterator[str]:
        nonlocal first, last
        for last, text in text_lines(path):
            first = first or last
            yield text

    try:
        for row in csv.reader(lines(), strict=True):
            yield last, row
            first = 0
    except csv.Error as error:
        raise InvalidTrace(
            Where(str(path), first or last), f"no CSV ({error})", "check quotes and line ends"
        ) from error


def _check_names(where: Where, names: Sequence[str]) -> None:
    if len(names) == 1:
        for separator, word in _SEPARATORS.items():
            if separator in names[0]:
                raise InvalidTrace(
                    where,
                    f"columns that are set apart by {word}",
                    "set them apart by commas, and write decimals with a point",
                )
    named = (name for name in names if any(map(str.isalpha, name)))  # the others are data, or nothing
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        raise InvalidTrace(
            where, f"two columns {twice[0][:40]}", "leave one of them out, or give it another name"
        )
