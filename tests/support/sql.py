"""Builders for schemas, results, drafts and small SQLite files."""

import sqlite3
from pathlib import Path

from hexflow_sql import (
    Candidate,
    Cell,
    Column,
    Database,
    Draft,
    Layers,
    Question,
    Result,
    Schema,
    Table,
    open_database,
)

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers, total_cents INTEGER, note TEXT);
INSERT INTO customers VALUES (1, 'O''Neil', 'Berlin'), (2, 'Ann', 'Paris'), (3, 'Bo', 'Berlin'), (4, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, 1000, 'gift'), (2, 1, 250, NULL), (3, 2, 999, ''), (4, 3, 1, 'say "hi"');
"""


def a_column(name: str, type: str = "TEXT", **more: object) -> Column:
    """Build a column."""
    return Column(name=name, type=type, **more)  # type: ignore[arg-type]


def a_table(name: str, *columns: str) -> Table:
    """Build a table of text columns."""
    return Table(name=name, columns=tuple(a_column(column) for column in columns))


def a_schema(*tables: Table, dialect: str = "sqlite") -> Schema:
    """Build a schema."""
    return Schema(dialect=dialect, tables=tables or (a_table("t", "a", "b"),))


def a_result(*rows: tuple[Cell, ...], truncated: bool = False) -> Result:
    """Build a result."""
    width = len(rows[0]) if rows else 1
    return Result(columns=tuple(f"c{i}" for i in range(width)), rows=rows, truncated=truncated)


def a_candidate(index: int = 0, sql: str | None = "SELECT 1", **more: object) -> Candidate:
    """Build a candidate."""
    return Candidate(index=index, sql=sql, **more)  # type: ignore[arg-type]


def a_draft(text: str = "How many customers live in Berlin?", **more: object) -> Draft:
    """Build a draft."""
    more.setdefault("schema", a_schema())
    return Draft(question=Question(text=text), **more)  # type: ignore[arg-type]


def a_sqlite_file(folder: Path, script: str = SHOP, name: str = "shop.sqlite") -> Path:
    """Write a SQLite file."""
    path = folder / name
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.commit()
    connection.close()
    return path


def a_database(
    folder: Path, script: str = SHOP, *, layers: Layers | None = None, **options: object
) -> Database:
    """Write a SQLite file and open it; the caller closes it."""
    path = a_sqlite_file(folder, script)
    return open_database(
        name="shop",
        dialect="sqlite",
        dsn=f"sqlite:///{path.name}",
        base_dir=folder,
        layers=layers or Layers(),
        **options,  # type: ignore[arg-type]
    )
