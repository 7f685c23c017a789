"""SQLite: a new read-only connection for every statement, sealed and limited before the statement arrives.

The engine layer is ``mode=ro`` and an authorizer that lets only reads of known tables through; each holds
without the parser. The resource layer is a set of SQLite limits, a progress handler, the authorizer's own
count during preparation (where SQLite calls no progress handler), a heap limit, and caps on what is
fetched. Everything blocking runs in aiosqlite's threads.
"""

import asyncio
import math
import sqlite3
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
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

from hexflow_sql.database.fetch import Meter, fetch
from hexflow_sql.database.heavy import bounded, mentioned
from hexflow_sql.database.seal import LimitedConnection, Names, PlainConnection, authorizer, births
from hexflow_sql.database.sqlite_schema import Catalogue, Reader, read_schema, read_statements, read_values
from hexflow_sql.database.watch import GRACE_SECONDS, PROGRESS_STEPS, Watch, Watchdog
from hexflow_sql.errors import DatabaseUnavailable, SqlError, StatementFailed
from hexflow_sql.guard import check
from hexflow_sql.limits import Layers, Limits
from hexflow_sql.result import Result
from hexflow_sql.schema import Schema, quoted
from hexflow_sql.values import ValueIndex

SCHEMA_SECONDS = 30.0
"""Longest statement that reads tables and columns."""

LOCK_SECONDS = 2.0
"""Longest wait for another process that writes; SQLite waits in one piece."""

QUICK_CHARACTERS = 1_500
"""Longest statement that is parsed on the event loop: a few milliseconds. Longer ones go to a thread."""

CONNECTIONS = 8
"""Statements that run at once on one database; more wait for their turn."""


_T = TypeVar("_T")


class _Stamp(NamedTuple):
    modified: int
    size: int
    inode: int


class _Known(NamedTuple):
    stamp: _Stamp
    at: float
    catalogue: Catalogue


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
        refresh_seconds: float,
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
        self._known: _Known | None = None
        self._values: tuple[Catalogue, ValueIndex] | None = None
        self._reading = asyncio.Lock()
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._running: dict[asyncio.Task[Result], Watch] = {}
        self._closed = False
        url = URL.create(
            "sqlite+aiosqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"}
        )
        factory = LimitedConnection if layers.resources else PlainConnection
        self._engine: AsyncEngine = create_async_engine(
            url, poolclass=NullPool, connect_args={"factory": factory, "timeout": LOCK_SECONDS}
        )

    @classmethod
    def from_dsn(cls, *, dsn: str, base_dir: Path, name: str, **options: Any) -> "SqliteDatabase":
        """Read ``sqlite:///relative.sqlite`` or ``sqlite:////absolute.sqlite``. Raises DatabaseUnavailable."""
        remedy = "write sqlite:///relative/path.sqlite or sqlite:////absolute/path.sqlite"
        try:
            url = make_url(dsn.strip())
        except (ArgumentError, ValueError):
            raise DatabaseUnavailable(
                "BadDsn", f"Database {name!r}: the DSN is not a URL; {remedy}."
            ) from None
        if url.get_backend_name() != "sqlite" or url.host or url.username:
            raise DatabaseUnavailable("BadDsn", f"Database {name!r}: the DSN is not one of SQLite; {remedy}.")
        if not url.database or url.database == ":memory:" or "\x00" in url.database:
            raise DatabaseUnavailable("BadDsn", f"Database {name!r}: the DSN names no file; {remedy}.")
        return cls(name=name, path=base_dir / url.database, **options)

    async def schema(self) -> Schema:
        """Describe the tables (see ``Database.schema``)."""
        return (await self._catalogue()).schema

    async def values(self) -> ValueIndex:
        """Index the texts of the cells (see ``Database.values``)."""
        catalogue = await self._catalogue()
        async with self._reading:
            if self._values is None or self._values[0] is not catalogue:
                index = await self._read(lambda reader: read_values(reader, catalogue.schema))
                self._values = (catalogue, index)
            return self._values[1]

    async def execute(self, sql: str, limits: Limits) -> Result:
        """Run one statement (see ``Database.execute``)."""
        catalogue = await self._catalogue()
        text = await self._checked(sql, catalogue.schema) if self._layers.parser else sql
        seconds = limits.seconds if self._layers.resources else math.inf
        watch = Watch(clock=self._clock, seconds=seconds)
        stuck: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._run(text, catalogue.names, limits, watch, stuck))
        self._running[task] = watch
        task.add_done_callback(self._ended)
        either: set[asyncio.Future[Any]] = {task, stuck}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            _stop(task, watch)
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            task.cancel()  # where it is stuck
            raise
        if not task.done():  # its thread ends on its own, and keeps its turn until then
            task.cancel()
            raise _timed_out(limits)
        if task.cancelled():
            raise self._closed_meanwhile()
        return task.result()

    def _ended(self, task: "asyncio.Task[Result]") -> None:
        self._running.pop(task, None)
        if not task.cancelled():
            task.exception()  # a statement that was left to itself has nobody else to look at it

    async def _checked(self, sql: str, schema: Schema) -> str:
        if len(sql) <= QUICK_CHARACTERS:
            return check(sql, dialect=self.dialect, schema=schema).text
        return (await asyncio.to_thread(check, sql, dialect=self.dialect, schema=schema)).text

    async def close(self) -> None:
        """Stop what runs (see ``Database.close``)."""
        self._closed = True
        for task, watch in self._running.items():
            _stop(task, watch)
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=GRACE_SECONDS)
        await self._engine.dispose()

    async def _run(
        self, text: str, names: Names, limits: Limits, watch: Watch, stuck: "asyncio.Future[None]"
    ) -> Result:
        loop = asyncio.get_running_loop()
        meter = Meter(limits) if self._layers.resources else None
        async with self._turns:
            started = self._clock()
            watch.start()
            async with self._connection() as (connection, driver):
                raw = driver._conn  # aiosqlite's own interrupt is a coroutine; the watchdog is a thread

                def interrupt() -> None:
                    with suppress(sqlite3.Error):  # SQLAlchemy has closed it meanwhile
                        raw.interrupt()

                with Watchdog(watch, interrupt=interrupt, stuck=lambda: _resolve(loop, stuck)):
                    try:
                        await self._seal(driver, text, names, watch, meter)
                        result = await connection.run_sync(lambda sync: _fetched(sync, text, meter, limits))
                    except _FAILURES as error:
                        raise self._failure(error, watch, limits) from None
        return replace(result, seconds=self._clock() - started)

    async def _catalogue(self) -> Catalogue:
        async with self._reading:
            stamp = self._stamp()
            if self._known is not None and self._clock() - self._known.at < self._refresh_seconds:
                if stamp == self._known.stamp:
                    return self._known.catalogue
                if await self._read(read_statements) == self._known.catalogue.statements:
                    self._known = self._known._replace(stamp=stamp)  # only rows have changed
                    return self._known.catalogue
            catalogue = await self._read(
                lambda reader: read_schema(
                    reader,
                    include=self._include,
                    exclude=self._exclude,
                    sample_values=self._sample_values,
                )
            )
            catalogue = await self._without_leaks(catalogue)
            if not catalogue.schema.tables:
                notes = "".join(f" ({note})" for note in catalogue.schema.notes[:3])
                raise DatabaseUnavailable(
                    "NoTables",
                    f"Database {self.name!r} has no table that may be read{notes}: fill it, or widen include and exclude.",
                )
            self._known = _Known(stamp, self._clock(), catalogue)
            return catalogue

    async def _without_leaks(self, catalogue: Catalogue) -> Catalogue:
        """Leave out the views that read tables which may not be read: the engine layer would refuse them."""
        if not catalogue.names.hidden or not self._layers.engine:
            return catalogue
        leaks: dict[str, str] = {}
        for view in (table for table in catalogue.schema.tables if table.view):
            text = f"SELECT * FROM {quoted(view.name, self.dialect)} LIMIT 0"  # noqa: S608 - quoted
            try:
                watch = Watch(clock=self._clock, seconds=Limits().seconds)
                nobody = asyncio.get_running_loop().create_future()
                await self._run(text, catalogue.names, Limits(columns=sys.maxsize), watch, nobody)
            except StatementFailed as error:
                leaks[view.name.casefold()] = f"{view.name}: left out, since {error.message}"
        schema = replace(
            catalogue.schema,
            tables=tuple(table for table in catalogue.schema.tables if table.name.casefold() not in leaks),
            notes=(*catalogue.schema.notes, *leaks.values()),
        )
        names = replace(
            catalogue.names,
            readable=catalogue.names.readable - leaks.keys(),
            hidden=catalogue.names.hidden | leaks.keys(),
        )
        return Catalogue(schema, names, catalogue.statements)

    async def _read(self, work: Callable[[Reader], _T]) -> _T:
        watch = Watch(clock=self._clock, seconds=SCHEMA_SECONDS)
        async with self._connection() as (connection, driver):
            await driver.set_progress_handler(watch.expired, PROGRESS_STEPS)
            try:
                return await connection.run_sync(
                    lambda sync: work(Reader(sync, watch=watch, clock=self._clock))
                )
            except BaseException:
                watch.stop()
                raise

    async def _seal(
        self, driver: aiosqlite.Connection, text: str, names: Names, watch: Watch, meter: Meter | None
    ) -> None:
        if meter is not None:
            driver.row_factory = meter  # type: ignore[assignment] # any callable will do
            await driver.set_progress_handler(watch.expired, PROGRESS_STEPS)
            raw = cast("LimitedConnection", driver._conn)
            for heavy in mentioned(text):
                function = bounded(heavy, expired=watch.expired, scratch=raw.scratch)
                await driver.create_function(heavy.name, heavy.arguments, function, deterministic=True)
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
    async def _connection(self) -> AsyncIterator[tuple[AsyncConnection, aiosqlite.Connection]]:
        if self._closed:
            raise DatabaseUnavailable("Closed", f"Database {self.name!r} is closed.")
        self._stamp()
        try:
            async with self._engine.connect() as connection:
                driver = (await connection.get_raw_connection()).driver_connection
                yield connection, cast("aiosqlite.Connection", driver)
        except DBAPIError as error:
            raise self._unavailable(str(error.orig)) from None

    def _failure(self, error: Exception, watch: Watch, limits: Limits) -> SqlError:
        text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        if self._closed:
            return self._closed_meanwhile()
        if watch.over:
            return _timed_out(limits)
        if watch.overasked:
            return StatementFailed("TooLarge", "The statement is too large once its WITH names are replaced.")
        if "user-defined function" in text:
            return StatementFailed(
                "TooLarge", "A function gets texts, or a width, that are too large for it."
            )
        if isinstance(error, MemoryError) or "out of memory" in text:
            return StatementFailed(
                "TooMuchMemory", "The statement needs more memory than a statement may have."
            )
        if any(part in text for part in _REMEDIES):
            return self._unavailable(text)
        for part, reason in _REASONS.items():
            if part in text:
                return StatementFailed(reason, text)
        return StatementFailed("Failed", text)

    def _closed_meanwhile(self) -> DatabaseUnavailable:
        return DatabaseUnavailable("Closed", f"Database {self.name!r} was closed while the statement ran.")

    def _unavailable(self, text: str) -> DatabaseUnavailable:
        for part, (reason, remedy) in (_REMEDIES | _UNFINISHED).items():
            if part in text:
                return DatabaseUnavailable(reason, f"Database {self.name!r}: {self._path.name} {remedy}")
        return DatabaseUnavailable(
            "Unreadable", f"Database {self.name!r}: {self._path.name} cannot be read: {text}."
        )

    def _stamp(self) -> _Stamp:
        """Look at the file before SQLite does: it would wait at a pipe and call a folder a database."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            raise DatabaseUnavailable(
                "NotFound",
                f"Database {self.name!r}: there is no file {self._path.name}; correct the DSN or make the file.",
            ) from None
        except OSError as error:
            raise self._unavailable(str(error.strerror)) from None
        if not stat.S_ISREG(status.st_mode):
            raise DatabaseUnavailable(
                "NotADatabase", f"Database {self.name!r}: {self._path.name} is not a file."
            )
        if status.st_size == 0:
            raise DatabaseUnavailable("NotADatabase", f"Database {self.name!r}: {self._path.name} is empty.")
        written = 0
        with suppress(OSError):  # it comes and goes with whoever writes
            written = self._path.with_name(self._path.name + "-wal").stat().st_mtime_ns
        return _Stamp(modified=max(status.st_mtime_ns, written), size=status.st_size, inode=status.st_ino)


def _fetched(connection: Connection, text: str, meter: Meter | None, limits: Limits) -> Result:
    options = {"no_parameters": True, "stream_results": True}
    with connection.exec_driver_sql(text, execution_options=options) as cursor:
        if not cursor.returns_rows:
            raise StatementFailed("NoRows", "The statement returns no rows.")
        return fetch(cursor, meter, most_columns=limits.columns if meter else sys.maxsize)


def _stop(task: "asyncio.Task[Result]", watch: Watch) -> None:
    """Interrupt a statement that runs: a cancelled task closes its connection before its cursor. Cancel one that waits."""
    watch.stop()
    if not watch.started:
        task.cancel()


def _timed_out(limits: Limits) -> StatementFailed:
    return StatementFailed(
        "TimedOut", f"The statement ran longer than {limits.seconds:.3g} s and was stopped."
    )


def _resolve(loop: asyncio.AbstractEventLoop, future: "asyncio.Future[None]") -> None:
    """Resolve a future from another thread, if anybody still waits for it."""

    def resolve() -> None:
        if not future.done():
            future.set_result(None)

    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(resolve)


_FAILURES = (DBAPIError, MemoryError, sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError)
"""What executing raises on a statement's account."""

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
    "stack overflow": "TooLarge",
    "interrupted": "Interrupted",
}
"""What SQLite says, and the word for it."""

_REMEDIES = {
    "file is not a database": (
        "NotADatabase",
        "is not a SQLite database (or is encrypted); name another file.",
    ),
    "image is malformed": ("Damaged", "is damaged; restore it from a copy."),
    "unable to open database": (
        "CannotOpen",
        "cannot be opened; check who may read it (and its folder, if it is in WAL mode).",
    ),
    "Permission denied": ("CannotOpen", "may not be read by this process; change its mode or owner."),
    "database is locked": ("Busy", "is locked by another process; try again."),
}

_UNFINISHED = {
    "readonly database": (
        "NeedsWriting",
        "cannot be read without writing: it is in WAL mode in a folder that this process may not write, or "
        "a process died while it changed it; open it once as its owner (sqlite3 FILE 'PRAGMA journal_mode=DELETE').",
    ),
}
"""The same while a file is opened; of a statement it would mean that the statement writes."""
