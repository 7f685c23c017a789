"""A report for people, as data: sentences, tables, charts, which whoever ran something fills in.

Commands print its tables; ``page`` makes a page of it, and pictures.
"""

from dataclasses import dataclass

from hexflow_simulator.chart import Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Head of a column."""

    name: str
    numbers: bool = True
    """Whether its cells are numbers, which stand on the right."""
    hint: str = ""
    """What it means, where the name is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose cells are ready to be read."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[int] = frozenset()
    """Rows to mark, counted from 0."""
    faint: frozenset[int] = frozenset()
    """Rows that are there to compare with (a bound)."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a page or a terminal shows, in that order."""

    title: str
    summary: tuple[str, ...] = ()
    """The answer, in paragraphs."""
    facts: tuple[tuple[str, str], ...] = ()
    """What it was found on: a word and what it is."""
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    """What to keep in mind."""
