"""SQLite: a new read-only connection for every statement, sealed and limited before the statement arrives.

The engine layer is ``mode=ro`` and an authorizer that lets only reads of known tables through; each holds
without the parser. The resource layer is a set of SQLite limits, a progress handler, the authorizer's own
count during preparation (where SQLite calls no progress handler), a heap limit, and caps on what is
fetched. Everything blocking runs in aiosqlite's threads.
"""

import asyncio
import sqlite3
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import quote

import aiosqlite
from sqlalchemy import Connection
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from hexflow_sql.errors import DatabaseUnavailable, SqlError, StatementFailed
from hexflow_sql.guard import check
from hexflow_sql.limits import Layers, Limits
from hexflow_sql.result import Result
from hexflow_sql.schema import Schema
from hexflow_sql.values import ValueIndex

from .fetch import Meter, fetch
from .seal import PROGRESS_STEPS, LimitedConnection, Names, PlainConnection, Watch, authorizer, births
from .sqlite_schema import Catalogue, read_schema, read_values

SCHEMA_SECONDS = 30.0
"""Longest reading of the schema with its sample values."""

CONNECTIONS = 8
"""Statements that run at once on one database; more wait for their turn."""


_T = TypeVar("_T")


class _Stamp(NamedTuple):
    modified: int
    size: int
    inode: int


class SqliteDatabase:
    """A SQLite file (see ``Database``)."""

    dialect = "sqlite"

    def __init__(
        self,
        *,
        name: str,
        path: Path,
        include: tuple[str, ...] = (),
        exclude: tuple[str, ...] = (),
        sample_values: int = 3,
        refresh_seconds: float | None = None,
        layers: Layers,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._path = path
        self._include = include
        self._exclude = exclude
        self._sample_values = sample_values
        self._refresh_seconds = refresh_seconds
        self._layers = layers
        self._clock = clock
        self._known: tuple[_Stamp, float, Catalogue] | None = None
        self._values: tuple[_Stamp, float, ValueIndex] | None = None
        self._reading = asyncio.Lock()
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._watches: set[Watch] = set()
        self._closed = False
        url = URL.create(
            "sqlite+aiosqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"}
        )
        factory = LimitedConnection if layers.resources else PlainConnection
        self._engine: AsyncEngine = create_async_engine(
            url, poolclass=NullPool, connect_args={"factory": factory}
        )

    @classmethod
    def from_dsn(cls, *, dsn: str, base_dir: Path, name: str, **options: Any) -> "SqliteDatabase":
        """Read ``sqlite:///relative.sqlite`` or ``sqlite:////absolute.sqlite``. Raises DatabaseUnavailable."""
        remedy = "write sqlite:///relative/path.sqlite or sqlite:////absolute/path.sqlite"
        try:
            url = make_url(dsn.strip())
        except ArgumentError:
            raise DatabaseUnavailable(
                "BadDsn", f"Database {name!r}: the DSN is not a URL; {remedy}."
            ) from None
        if url.get_backend_name() != "sqlite" or url.host or url.username:
            raise DatabaseUnavailable("BadDsn", f"Database {name!r}: the DSN is not one of SQLite; {remedy}.")
        if not url.database or url.database == ":memory:":
            raise DatabaseUnavailable("BadDsn", f"Database {name!r}: the DSN names no file; {remedy}.")
        return cls(name=name, path=base_dir / url.database, **options)

    async def schema(self) -> Schema:
        """Describe the tables (see ``Database.schema``)."""
        return (await self._catalogue()).schema

    async def values(self) -> ValueIndex:
        """Index the texts of the cells (see ``Database.values``)."""
        schema = await self.schema()
        async with self._reading:
            stamp = self._stamp()
            if self._values is None or not self._fresh(self._values[0], self._values[1], stamp):
                index = await self._read(lambda connection: read_values(connection, schema))
                self._values = (stamp, self._clock(), index)
            return self._values[2]

    async def execute(self, sql: str, limits: Limits) -> Result:
        """Run one statement (see ``Database.execute``)."""
        catalogue = await self._catalogue()
        text = check(sql, dialect=self.dialect, schema=catalogue.schema).text if self._layers.parser else sql
        async with self._turns:
            started = self._clock()
            watch = Watch(clock=self._clock, seconds=limits.seconds)
            meter = Meter(limits) if self._layers.resources else None
            async with self._connection(watch) as (connection, driver):
                await self._seal(driver, text, catalogue.names, watch, meter)
                try:
                    result = await connection.run_sync(lambda sync: _run(sync, text, meter, limits))
                except (DBAPIError, MemoryError, sqlite3.Error, OverflowError) as error:
                    raise self._failure(error, watch, limits) from None
                except BaseException:
                    watch.stop()
                    await driver.interrupt()
                    raise
        return replace(result, seconds=self._clock() - started)

    async def close(self) -> None:
        """Stop what runs (see ``Database.close``)."""
        self._closed = True
        for watch in self._watches:
            watch.stop()
        await self._engine.dispose()

    async def _catalogue(self) -> Catalogue:
        async with self._reading:
            stamp = self._stamp()
            if self._known is None or not self._fresh(self._known[0], self._known[1], stamp):
                catalogue = await self._read(
                    lambda connection: read_schema(
                        connection,
                        include=self._include,
                        exclude=self._exclude,
                        sample_values=self._sample_values,
                    )
                )
                if not catalogue.schema.tables:
                    raise DatabaseUnavailable(
                        "NoTables",
                        f"Database {self.name!r} has no table that may be read: fill it, or widen include and exclude.",
                    )
                self._known = (stamp, self._clock(), catalogue)
            return self._known[2]

    async def _read(self, work: Callable[[Connection], _T]) -> _T:
        watch = Watch(clock=self._clock, seconds=SCHEMA_SECONDS)
        async with self._connection(watch) as (connection, driver):
            await driver.set_progress_handler(watch.expired, PROGRESS_STEPS)
            try:
                return await connection.run_sync(work)
            except BaseException:
                watch.stop()
                raise

    async def _seal(
        self, driver: aiosqlite.Connection, text: str, names: Names, watch: Watch, meter: Meter | None
    ) -> None:
        if meter is not None:
            driver.row_factory = meter  # type: ignore[assignment] # any callable will do
            await driver.set_progress_handler(watch.expired, PROGRESS_STEPS)
        if self._layers.engine:
            folded = text.casefold()
            for source in births(names):
                if source.name in folded:
                    await driver.execute_fetchall(source.statement)
        if self._layers.engine or self._layers.resources:
            await driver.set_authorizer(
                authorizer(names if self._layers.engine else None, watch if self._layers.resources else None)
            )

    @asynccontextmanager
    async def _connection(self, watch: Watch) -> AsyncIterator[tuple[AsyncConnection, aiosqlite.Connection]]:
        if self._closed:
            raise DatabaseUnavailable("Closed", f"Database {self.name!r} is closed.")
        self._stamp()
        self._watches.add(watch)
        try:
            async with self._engine.connect() as connection:
                driver = (await connection.get_raw_connection()).driver_connection
                yield connection, cast("aiosqlite.Connection", driver)
        except DBAPIError as error:
            raise self._unavailable(str(error.orig)) from None
        finally:
            watch.stop()
            self._watches.discard(watch)

    def _failure(self, error: Exception, watch: Watch, limits: Limits) -> SqlError:
        text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        if watch.over:
            return StatementFailed(
                "TimedOut", f"The statement ran longer than {limits.seconds:.3g} s and was stopped."
            )
        if isinstance(error, MemoryError) or "out of memory" in text:
            return StatementFailed(
                "TooMuchMemory", "The statement needs more memory than a statement may have."
            )
        if "not a database" in text or "unable to open" in text or "malformed" in text:
            return self._unavailable(text)
        for part, reason in _REASONS.items():
            if part in text:
                return StatementFailed(reason, text)
        return StatementFailed("Failed", text)

    def _unavailable(self, text: str) -> DatabaseUnavailable:
        for part, (reason, remedy) in _REMEDIES.items():
            if part in text:
                return DatabaseUnavailable(reason, f"Database {self.name!r}: {self._path} {remedy}")
        return DatabaseUnavailable(
            "Unreadable", f"Database {self.name!r}: {self._path} cannot be read: {text}."
        )

    def _fresh(self, then: _Stamp, at: float, now: _Stamp) -> bool:
        return then == now and (self._refresh_seconds is None or self._clock() - at < self._refresh_seconds)

    def _stamp(self) -> _Stamp:
        """Look at the file before SQLite does: it would wait at a pipe and call a folder a database."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            raise DatabaseUnavailable(
                "NotFound",
                f"Database {self.name!r}: there is no file {self._path}; correct the DSN or make the file.",
            ) from None
        except OSError as error:
            raise self._unavailable(str(error.strerror)) from None
        if not stat.S_ISREG(status.st_mode):
            raise DatabaseUnavailable("NotADatabase", f"Database {self.name!r}: {self._path} is not a file.")
        if status.st_size == 0:
            raise DatabaseUnavailable("NotADatabase", f"Database {self.name!r}: {self._path} is empty.")
        log = self._path.with_name(self._path.name + "-wal")
        written = log.stat().st_mtime_ns if log.exists() else 0
        return _Stamp(modified=max(status.st_mtime_ns, written), size=status.st_size, inode=status.st_ino)


def _run(connection: Connection, text: str, meter: Meter | None, limits: Limits) -> Result:
    options = {"no_parameters": True, "stream_results": True}
    with connection.exec_driver_sql(text, execution_options=options) as cursor:
        if not cursor.returns_rows:
            raise StatementFailed("NoRows", "The statement returns no rows.")
        return fetch(cursor, meter, most_columns=limits.columns if meter else sys.maxsize)


_REASONS = {
    "no such column": "NoSuchColumn",
    "ambiguous column": "AmbiguousColumn",
    "no such table": "NoSuchTable",
    "no such function": "NoSuchFunction",
    "syntax error": "Syntax",
    "incomplete input": "Syntax",
    "not authorized": "Forbidden",
    "prohibited": "Forbidden",
    "readonly database": "Forbidden",
    "one statement at a time": "Forbidden",
    "too big": "TooLarge",
    "too large": "TooLarge",
    "too long": "TooLarge",
    "too many": "TooLarge",
    "too complex": "TooLarge",
    "interrupted": "Interrupted",
}
"""What SQLite says, and the word for it."""

_REMEDIES = {
    "not a database": ("NotADatabase", "is not a SQLite database (or is encrypted); name another file."),
    "malformed": ("Damaged", "is damaged; restore it from a copy."),
    "unable to open": (
        "CannotOpen",
        "cannot be opened; check who may read it (and its folder, if it is in WAL mode).",
    ),
    "Permission denied": ("CannotOpen", "may not be read by this process; change its mode or owner."),
    "locked": ("Busy", "is locked by another process; try again."),
}
