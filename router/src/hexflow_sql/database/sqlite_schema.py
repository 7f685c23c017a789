"""Reading what a SQLite file holds: tables, columns, keys, frequent values and the texts of its cells.

Our own statements, on an unsealed read-only connection; names of the file are quoted, never trusted. Tables
and columns are read whatever it takes; values within limits, so that a large table or a slow view costs a few
seconds and its values, but not the database.
"""

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from hexflow_sql.database.seal import Names
from hexflow_sql.database.watch import Watch
from hexflow_sql.schema import SAMPLE_CHARACTERS, Column, ForeignKey, Schema, Table, literal, quoted
from hexflow_sql.values import MAX_VALUE_CHARACTERS, ValueIndex, ValueMatch

SCANNED_ROWS = 100_000
"""Rows of a table that are looked at, from its beginning."""

SAMPLED_ROWS = 5_000
"""Values of a column among which its frequent ones are counted."""

GLANCE_SECONDS = 1.0
"""Longest look at the values of one column."""

VALUES_SECONDS = 10.0
"""Longest looking at values in all; the columns after that go without."""

INDEXED_VALUES = 2_000
"""Most distinct texts of one column in the index of values; a column with more is prose or a key."""

INDEXED_IN_ALL = 100_000
"""Most distinct texts in the index."""


class Catalogue(NamedTuple):
    """What reading a file gives: the schema, and the names for the engine layer."""

    schema: Schema
    names: Names
    statements: tuple[str, ...]
    """What made the tables: the same while only rows change."""


class _Listed(NamedTuple):
    name: str
    kind: str


class Reader:
    """Run our own statements; ``watch`` is the connection's progress handler."""

    def __init__(self, connection: Connection, *, watch: Watch, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._watch = watch
        self._clock = clock
        self._ends = clock() + VALUES_SECONDS

    def rows(self, sql: str) -> list[Any]:
        """Read what there must be."""
        self._watch.start()
        return list(self._connection.exec_driver_sql(sql, execution_options={"no_parameters": True}).all())

    def glance(self, sql: str) -> list[Any] | None:
        """Read values, or None where that takes too long, too much, or fails."""
        left = self._ends - self._clock()
        if left <= 0:
            return None
        self._watch.start(min(left, GLANCE_SECONDS))
        try:
            return list(
                self._connection.exec_driver_sql(sql, execution_options={"no_parameters": True}).all()
            )
        except (DBAPIError, MemoryError):
            return None


def read_schema(
    reader: Reader, *, include: Sequence[str], exclude: Sequence[str], sample_values: int
) -> Catalogue:
    """Read all tables that are included and not excluded, in the file's own order."""
    listed = [_Listed(name, kind) for name, kind in reader.rows(_LIST)]
    chosen = [entry for entry in listed if entry.kind != "shadow" and _wanted(entry.name, include, exclude)]
    folded = {entry.name.casefold() for entry in chosen}
    tables, notes = [], []
    for entry in chosen:
        try:
            tables.append(_read_table(reader, entry, folded, sample_values))
        except DBAPIError as error:
            notes.append(f"{entry.name}: left out, since reading it fails: {error.orig}")
    known = {table.name.casefold() for table in tables}
    names = Names(
        readable=frozenset(known | _shadows(listed, known)),
        virtual=tuple(entry.name.casefold() for entry in chosen if entry.kind == "virtual"),
        hidden=frozenset(entry.name.casefold() for entry in listed) - known - _shadows(listed, known),
    )
    schema = Schema(dialect="sqlite", tables=tuple(tables), notes=tuple(notes))
    return Catalogue(schema, names, read_statements(reader))


def read_statements(reader: Reader) -> tuple[str, ...]:
    """Read the statements that made the tables, a matter of milliseconds."""
    return tuple(row[0] for row in reader.rows("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))


def read_values(reader: Reader, schema: Schema) -> ValueIndex:
    """Read the distinct short texts of every column that may hold texts and has not too many."""
    found: list[ValueMatch] = []
    covered: list[tuple[str, str]] = []
    for table in schema.tables:
        whole = _scans_whole(reader, table.name)
        for column in table.columns:
            texts = _distinct_texts(reader, table.name, column.name)
            if texts is None or len(texts) > INDEXED_VALUES or len(found) + len(texts) > INDEXED_IN_ALL:
                continue
            found.extend(ValueMatch(table.name, column.name, text) for text in texts)
            if whole:
                covered.append((table.name, column.name))
    return ValueIndex.build(found, covered=covered)


_LIST = """
SELECT l.name, l.type FROM pragma_table_list AS l LEFT JOIN sqlite_schema AS s
ON s.name = l.name AND s.type IN ('table', 'view')
WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY s.rowid
"""
"""Tables in the order in which they were made: the same for the same file, so that prompts are, too."""


def _shadows(listed: Sequence[_Listed], known: set[str]) -> set[str]:
    """Find the tables that virtual tables keep for themselves, for those that may be read."""
    virtual = sorted((entry.name.casefold() for entry in listed if entry.kind == "virtual"), key=len)
    owners = {
        entry.name.casefold(): name  # the longest name that fits, since sorted by length
        for name in virtual
        for entry in listed
        if entry.kind == "shadow" and entry.name.casefold().startswith(f"{name}_")
    }
    return {shadow for shadow, owner in owners.items() if owner in known}


def _read_table(reader: Reader, entry: _Listed, known: set[str], sample_values: int) -> Table:
    columns = []
    for _, name, kind, not_null, _, key, hidden in reader.rows(_pragma("table_xinfo", entry.name)):
        if hidden == 1:  # a virtual table's argument
            continue
        columns.append(
            Column(
                name=name,
                type=" ".join(str(kind or "").split()),
                nullable=not not_null and not key,
                primary_key=bool(key),
                samples=_samples(reader, entry.name, name, sample_values) if sample_values > 0 else (),
            )
        )
    return Table(
        name=entry.name,
        columns=tuple(columns),
        foreign_keys=tuple(key for key in _foreign_keys(reader, entry.name) if key.table.casefold() in known),
        view=entry.kind == "view",
    )


def _foreign_keys(reader: Reader, table: str) -> Iterator[ForeignKey]:
    keys: dict[int, list[Any]] = {}
    for row in reader.rows(_pragma("foreign_key_list", table)):
        keys.setdefault(row[0], []).append(row)
    for rows in reversed(keys.values()):  # SQLite lists the last declared first
        own = tuple(row[3] for row in rows)
        there = tuple(row[4] for row in rows)
        if None in there:  # REFERENCES without columns means the other table's key
            there = tuple(
                row[1]
                for row in sorted(reader.rows(_pragma("table_xinfo", rows[0][2])), key=lambda r: r[5])
                if row[5]
            )
        yield ForeignKey(own, rows[0][2], there)


def _samples(reader: Reader, table: str, column: str, most: int) -> tuple[str, ...]:
    rows = reader.glance(
        f"SELECT v FROM (SELECT CASE WHEN typeof(c) IN ('text', 'blob')"  # noqa: S608 - quoted
        f" THEN substr(c, 1, {SAMPLE_CHARACTERS + 1}) ELSE c END AS v FROM ({_scanned(table, column)})"
        f" WHERE c IS NOT NULL LIMIT {SAMPLED_ROWS}) GROUP BY v ORDER BY count(*) DESC, v LIMIT {most}"
    )
    return tuple(literal(row[0]) for row in rows or ())


def _distinct_texts(reader: Reader, table: str, column: str) -> list[str] | None:
    rows = reader.glance(
        f"SELECT DISTINCT c FROM ({_scanned(table, column)}) WHERE typeof(c) = 'text'"  # noqa: S608 - quoted
        f" AND length(c) BETWEEN 1 AND {MAX_VALUE_CHARACTERS} LIMIT {INDEXED_VALUES + 1}"
    )
    return None if rows is None else [row[0] for row in rows]


def _scanned(table: str, column: str) -> str:
    names = quoted(column, "sqlite"), quoted(table, "sqlite")
    return f"SELECT {names[0]} AS c FROM {names[1]} LIMIT {SCANNED_ROWS}"  # noqa: S608 - quoted


def _scans_whole(reader: Reader, table: str) -> bool:
    rows = reader.glance(
        f"SELECT count(*) FROM (SELECT 1 FROM {quoted(table, 'sqlite')} LIMIT {SCANNED_ROWS + 1})"  # noqa: S608
    )
    return rows is not None and rows[0][0] <= SCANNED_ROWS


def _pragma(pragma: str, table: str) -> str:
    return f"PRAGMA {pragma}({quoted(table, 'sqlite')})"


def _wanted(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    folded = name.casefold()

    def matches(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(folded, pattern.casefold()) for pattern in patterns)

    return (not include or matches(include)) and not matches(exclude)
