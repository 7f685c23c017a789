"""What a SQLite connection is sealed and limited with.

Pure of SQLAlchemy, so that tests can put each layer alone on a bare ``sqlite3`` connection.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from hexflow_sql.database.watch import Watch
from hexflow_sql.denied import TABLE_FUNCTIONS, denied
from hexflow_sql.schema import quoted

CELL_BYTES = 262_144
"""Longest text or blob SQLite may build or read, so that no single step takes long or much memory."""

HEAP_BYTES = 256 * 1024 * 1024
"""Most memory SQLite may hold in this process, all connections together. SQLite lets nobody raise it later."""

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 50_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 20_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 32,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 128,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 16,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

_READ = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE})

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Hold the names the engine layer goes by, folded."""

    readable: frozenset[str]
    """Tables that may be read, with what SQLite reads on their behalf."""
    virtual: tuple[str, ...] = ()
    """Virtual tables among them: SQLite must meet them before the seal, or takes their birth for a write."""
    hidden: frozenset[str]
    """Tables that exist and may not be read; a WITH name of the same name is refused, too."""


class PlainConnection(sqlite3.Connection):
    """A connection without limits that keeps its temporary tables off the disk."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.text_factory = lambda raw: raw.decode(errors="replace")
        self.execute("PRAGMA temp_store=MEMORY")

    def create_function(self, name: str, *arguments: Any, **options: Any) -> None:
        """Take no REGEXP and FLOOR from SQLAlchemy: they are Python's, and cannot be interrupted."""
        if name not in {"regexp", "floor"}:
            super().create_function(name, *arguments, **options)


class LimitedConnection(PlainConnection):
    """A connection under SQLite's own limits."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._scratch: sqlite3.Connection | None = None
        for limit, most in _LIMITS.items():
            self.setlimit(limit, most)
        self.execute(f"PRAGMA hard_heap_limit={HEAP_BYTES}")
        self.execute("PRAGMA mmap_size=0")

    def scratch(self) -> sqlite3.Connection:
        """Give a connection without tables, to compute with while this one runs a statement."""
        if self._scratch is None:
            self._scratch = sqlite3.connect(":memory:")
        return self._scratch

    def close(self) -> None:
        """Close both."""
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
        super().close()


class Birth(NamedTuple):
    """Name a virtual table and a statement that makes SQLite meet it."""

    name: str
    statement: str


def births(names: Names) -> Iterator[Birth]:
    """List what a connection must meet before it is sealed, if a statement mentions it."""
    for function in sorted(TABLE_FUNCTIONS["sqlite"] - names.readable - names.hidden):
        yield Birth(function, f"SELECT 1 FROM {function}('[]') LIMIT 0")  # noqa: S608 - our own names
    for table in names.virtual:
        yield Birth(table, f"SELECT 1 FROM {quoted(table, 'sqlite')} LIMIT 0")  # noqa: S608 - quoted


def authorizer(names: Names | None, watch: Watch | None) -> Authorizer:
    """Make the authorizer of one statement.

    With names it lets reads of readable tables and harmless functions through and nothing else. With a watch
    it ends a preparation that takes too long. SQLite asks once for every table, column and function.
    """
    functions = TABLE_FUNCTIONS["sqlite"]

    def allows(action: int, first: str | None, second: str | None) -> bool:
        assert names is not None  # noqa: S101 - asked only then
        if action in _READ:
            return True
        if action == sqlite3.SQLITE_READ:
            table = (first or "").casefold()
            if table in names.readable or table in functions:
                return True
            # A table none of whose columns is read may be a WITH name: SQLite does not say which.
            return not second and not _reserved(table) and table not in names.hidden
        if action == sqlite3.SQLITE_FUNCTION:
            return not denied(second or "", "sqlite")
        # Full-text search asks its own file for news with this one.
        return (
            action == sqlite3.SQLITE_PRAGMA and first == "data_version" and not second and bool(names.virtual)
        )

    def authorize(
        action: int, first: str | None, second: str | None, _database: str | None, _source: str | None
    ) -> int:
        if watch is not None and not watch.prepares():
            return sqlite3.SQLITE_DENY
        if names is not None and not allows(action, first, second):
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    return authorize


def _reserved(table: str) -> bool:
    return table.startswith(("sqlite_", "pragma_", "dbstat", "fts"))
