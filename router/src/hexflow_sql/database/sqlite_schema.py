"""Reading what a SQLite file holds: tables, columns, keys, frequent values and the texts of its cells.

Our own statements, on an unsealed read-only connection; names of the file are quoted, never trusted.
"""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from hexflow_sql.database.seal import Names
from hexflow_sql.schema import Column, ForeignKey, Schema, Table, literal, quoted
from hexflow_sql.values import MAX_VALUE_CHARACTERS, ValueIndex, ValueMatch

SAMPLED_ROWS = 5_000
"""Rows of a table among which its frequent values are counted."""

INDEXED_VALUES = 2_000
"""Most distinct texts of one column in the index of values; a column with more is prose or a key."""

INDEXED_IN_ALL = 100_000
"""Most distinct texts in the index."""


class Catalogue(NamedTuple):
    """What reading a file gives: the schema, and the names for the engine layer."""

    schema: Schema
    names: Names


class _Listed(NamedTuple):
    name: str
    kind: str


def read_schema(
    connection: Connection, *, include: Sequence[str], exclude: Sequence[str], sample_values: int
) -> Catalogue:
    """Read all tables that are included and not excluded, in the file's own order."""
    listed = [_Listed(name, kind) for name, kind in _rows(connection, _LIST)]
    chosen = [entry for entry in listed if entry.kind != "shadow" and _wanted(entry.name, include, exclude)]
    folded = {entry.name.casefold() for entry in chosen}
    tables, notes = [], []
    for entry in listed:
        if entry.kind == "shadow" or entry.name.casefold() not in folded:
            continue
        try:
            tables.append(_read_table(connection, entry, folded, sample_values))
        except DBAPIError as error:
            notes.append(f"{entry.name}: left out, since reading it fails: {error.orig}")
    known = {table.name.casefold() for table in tables}
    shadows = {
        entry.name.casefold()
        for entry in listed
        if entry.kind == "shadow" and any(entry.name.casefold().startswith(f"{name}_") for name in known)
    }
    names = Names(
        readable=frozenset(known | shadows),
        virtual=tuple(entry.name.casefold() for entry in chosen if entry.kind == "virtual"),
        hidden=frozenset(entry.name.casefold() for entry in listed) - known - shadows,
    )
    return Catalogue(Schema(dialect="sqlite", tables=tuple(tables), notes=tuple(notes)), names)


def read_values(connection: Connection, schema: Schema) -> ValueIndex:
    """Read the distinct short texts of every column that may hold texts and has not too many."""
    found: list[ValueMatch] = []
    covered: list[tuple[str, str]] = []
    for table in schema.tables:
        for column in table.columns:
            texts = _distinct_texts(connection, table.name, column.name)
            if len(texts) <= INDEXED_VALUES and len(found) + len(texts) <= INDEXED_IN_ALL:
                found.extend(ValueMatch(table.name, column.name, text) for text in texts)
                covered.append((table.name, column.name))
    return ValueIndex.build(found, covered=covered)


_LIST = """
SELECT l.name, l.type FROM pragma_table_list AS l LEFT JOIN sqlite_schema AS s
ON s.name = l.name AND s.type IN ('table', 'view')
WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY s.rowid
"""
"""Tables in the order in which they were made: the same for the same file, so that prompts are, too."""


def _read_table(connection: Connection, entry: _Listed, known: set[str], sample_values: int) -> Table:
    columns = []
    for _, name, kind, not_null, _, key, hidden in _rows(connection, _pragma("table_xinfo", entry.name)):
        if hidden == 1:  # a virtual table's argument
            continue
        columns.append(
            Column(
                name=name,
                type=" ".join(str(kind or "").split()),
                nullable=not not_null and not key,
                primary_key=bool(key),
                samples=_samples(connection, entry.name, name, sample_values) if sample_values > 0 else (),
            )
        )
    return Table(
        name=entry.name,
        columns=tuple(columns),
        foreign_keys=tuple(
            key for key in _foreign_keys(connection, entry.name) if key.table.casefold() in known
        ),
        view=entry.kind == "view",
    )


def _foreign_keys(connection: Connection, table: str) -> Iterator[ForeignKey]:
    keys: dict[int, list[Any]] = {}
    for row in _rows(connection, _pragma("foreign_key_list", table)):
        keys.setdefault(row[0], []).append(row)
    for rows in reversed(keys.values()):  # SQLite lists the last declared first
        own = tuple(row[3] for row in rows)
        there = tuple(row[4] for row in rows)
        if None in there:  # REFERENCES without columns means the other table's key
            there = tuple(
                row[1]
                for row in sorted(_rows(connection, _pragma("table_xinfo", rows[0][2])), key=lambda r: r[5])
                if row[5]
            )
        yield ForeignKey(own, rows[0][2], there)


def _samples(connection: Connection, table: str, column: str, most: int) -> tuple[str, ...]:
    name = quoted(column, "sqlite")
    rows = _rows(
        connection,
        f"SELECT v FROM (SELECT {name} AS v FROM {quoted(table, 'sqlite')} WHERE {name} IS NOT NULL"  # noqa: S608
        f" LIMIT {SAMPLED_ROWS}) GROUP BY v ORDER BY count(*) DESC, v LIMIT {most}",
    )
    return tuple(literal(row[0]) for row in rows)


def _distinct_texts(connection: Connection, table: str, column: str) -> list[str]:
    name = quoted(column, "sqlite")
    rows = _rows(
        connection,
        f"SELECT DISTINCT {name} FROM {quoted(table, 'sqlite')} WHERE typeof({name}) = 'text'"  # noqa: S608
        f" AND length({name}) BETWEEN 1 AND {MAX_VALUE_CHARACTERS} LIMIT {INDEXED_VALUES + 1}",
    )
    return [row[0] for row in rows]


def _pragma(pragma: str, table: str) -> str:
    return f"PRAGMA {pragma}({quoted(table, 'sqlite')})"


def _rows(connection: Connection, sql: str) -> list[Any]:
    return list(connection.exec_driver_sql(sql, execution_options={"no_parameters": True}).all())


def _wanted(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    folded = name.casefold()

    def matches(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(folded, pattern.casefold()) for pattern in patterns)

    return (not include or matches(include)) and not matches(exclude)
