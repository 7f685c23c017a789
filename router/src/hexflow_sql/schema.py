"""What the stages and the guard know of a database: tables, columns, keys and a few sample values.

Rendering is the same for the same schema every time, so that engines find it in their prefix caches.
Sample values are somebody's data: they are written as literals inside comments, one line, capped, and can
be left out; they never become instructions or DDL.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

SAMPLE_CHARACTERS = 40
"""Longest sample value that a prompt shows; the rest of it becomes an ellipsis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Describe a column; ``type`` is as it was declared and may be empty on SQLite."""

    name: str
    type: str = ""
    nullable: bool = True
    primary_key: bool = False
    samples: tuple[str, ...] = ()
    """Frequent values, already literals of the dialect."""


class ForeignKey(NamedTuple):
    """Point from columns of one table to columns of another."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Describe a table or a view."""

    name: str
    columns: tuple[Column, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    view: bool = False

    def column(self, name: str) -> Column | None:
        """Find a column by its name, ignoring case."""
        folded = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == folded), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Hold the tables that questions may use; what is not here cannot be read."""

    dialect: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    """What was left out and why, for people."""

    def table(self, name: str) -> Table | None:
        """Find a table by its name, ignoring case."""
        folded = name.casefold()
        return next((table for table in self.tables if table.name.casefold() == folded), None)

    def pruned(self, keep: Mapping[str, Iterable[str]]) -> "Schema":
        """Keep the named tables with the named columns, their keys, and the columns that join them.

        An empty list of columns keeps all of a table's columns. Names that do not exist are ignored.
        """
        names = {name.casefold(): {column.casefold() for column in columns} for name, columns in keep.items()}
        kept = []
        for table in self.tables:
            if table.name.casefold() not in names:
                continue
            wanted = names[table.name.casefold()]
            keys = tuple(key for key in table.foreign_keys if key.table.casefold() in names)
            wanted_by_keys = {column.casefold() for key in keys for column in key.columns}
            wanted_by_others = {
                column.casefold()
                for other in self.tables
                if other.name.casefold() in names
                for key in other.foreign_keys
                if key.table.casefold() == table.name.casefold()
                for column in key.references
            }
            columns = tuple(
                column
                for column in table.columns
                if not wanted
                or column.primary_key
                or column.name.casefold() in wanted | wanted_by_keys | wanted_by_others
            )
            kept.append(replace(table, columns=columns, foreign_keys=keys))
        return replace(self, tables=tuple(kept))


def quoted(name: str, dialect: str) -> str:
    """Quote an identifier, whatever it is made of."""
    mark = "`" if dialect == "mysql" else '"'
    return mark + name.replace(mark, mark * 2) + mark


def literal(value: object) -> str:
    """Write a sample value as a literal on one line, capped."""
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, bytes):
        return (
            "x'"
            + value[: SAMPLE_CHARACTERS // 4].hex()
            + ("…'" if len(value) > SAMPLE_CHARACTERS // 4 else "'")
        )
    text = "".join(character if character.isprintable() else " " for character in str(value))
    if len(text) > SAMPLE_CHARACTERS:
        text = text[: SAMPLE_CHARACTERS - 1] + "…"
    return "'" + text.replace("'", "''") + "'"


def render(schema: Schema, *, samples: bool = True) -> str:
    """Write the schema as DDL: quoted names, keys, and sample values as comments at the line's end."""
    return "\n\n".join(
        _render_table(table, dialect=schema.dialect, samples=samples) for table in schema.tables
    )


def render_names(schema: Schema) -> str:
    """Write one line for each table, with the names of its columns: for schemas too large for DDL."""
    return "\n".join(
        f"{quoted(table.name, schema.dialect)} ("
        + ", ".join(quoted(column.name, schema.dialect) for column in table.columns)
        + ")"
        for table in schema.tables
    )


def _render_table(table: Table, *, dialect: str, samples: bool) -> str:
    lines: list[tuple[str, str]] = []
    for column in table.columns:
        text = f"  {quoted(column.name, dialect)} {column.type}".rstrip()
        if column.primary_key:
            text += " PRIMARY KEY"
        elif not column.nullable:
            text += " NOT NULL"
        lines.append((text, ", ".join(column.samples) if samples else ""))
    for key in table.foreign_keys:
        own = ", ".join(quoted(name, dialect) for name in key.columns)
        there = ", ".join(quoted(name, dialect) for name in key.references)
        lines.append((f"  FOREIGN KEY ({own}) REFERENCES {quoted(key.table, dialect)} ({there})", ""))
    body = "\n".join(
        text + ("," if place < len(lines) - 1 else "") + (f"  -- e.g. {values}" if values else "")
        for place, (text, values) in enumerate(lines)
    )
    kind = "VIEW" if table.view else "TABLE"
    return f"CREATE {kind} {quoted(table.name, dialect)} (\n{body}\n);"
