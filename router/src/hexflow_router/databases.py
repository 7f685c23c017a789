"""The databases that are open: one for each description in force, closed when its last user has left.

Their schemas are read ahead, in the background, so that the first question need not wait and what is wrong is
logged before anybody asks; a question finds out for itself all the same.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hexflow_router.configuration import Configuration, DatabaseSetup
from hexflow_sql.database import Database, open_database
from hexflow_sql.errors import DatabaseUnavailable, SqlError

_log = logging.getLogger("hexflow.router.databases")

CLOSING_SECONDS = 2.0
"""How long a database that is being read ahead has to answer before its connection is dropped."""


@dataclass(slots=True)
class _Open:
    database: Database
    setup: DatabaseSetup
    users: int = 0
    retired: bool = False


class Databases:
    """Lend the databases of the configuration in force. For one event loop."""

    def __init__(self, open_one: Callable[[DatabaseSetup], Database] | None = None) -> None:
        """Use ``open_one`` to open a database; the default opens what hexflow_sql has drivers for."""
        self._open_one = open_one or _open
        self._setups: dict[tuple[str, str], DatabaseSetup] = {}
        self._open: dict[tuple[str, str], _Open] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None

    def configure(self, configuration: Configuration) -> None:
        """Take over the descriptions of a configuration; what they change is opened anew when it is used."""
        self._setups = {
            (workflow.name, name): setup
            for workflow in configuration.workflows.values()
            for name, setup in workflow.databases.items()
        }
        for key, opened in tuple(self._open.items()):
            if self._setups.get(key) != opened.setup:
                del self._open[key]
                opened.retired = True
                self._close_if_idle(opened)
        self._reading = asyncio.ensure_future(self._read_ahead(self._reading))

    @asynccontextmanager
    async def lend(self, workflow: str, name: str) -> AsyncIterator[Database]:
        """Lend a database for the length of a block. Raises DatabaseUnavailable."""
        opened = self._get((workflow, name))
        opened.users += 1
        try:
            yield opened.database
        finally:
            opened.users -= 1
            self._close_if_idle(opened)

    async def close(self) -> None:
        """Close every database, used or not."""
        reading, self._reading = self._reading, None
        if reading is not None:
            await asyncio.wait([reading], timeout=CLOSING_SECONDS)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        opened, self._open = list(self._open.values()), {}
        for one in opened:
            await one.database.close()
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _read_ahead(self, earlier: asyncio.Task[None] | None) -> None:
        # It is not cancelled when it is out of date, only stopped between two databases: a driver's thread that
        # is opening a connection for a task that is gone would report it to an event loop that may be, too.
        if earlier is not None:
            await asyncio.gather(earlier, return_exceptions=True)
        for workflow, name in tuple(self._setups):
            if self._reading is not asyncio.current_task():
                return
            try:
                async with self.lend(workflow, name) as database:
                    for note in (await database.schema()).notes:
                        _log.warning("Database %r of workflow %r: %s", name, workflow, note)
                    await database.values()
            except SqlError as problem:
                _log.warning("Questions of workflow %r cannot be answered now: %s", workflow, problem)

    def _get(self, key: tuple[str, str]) -> _Open:
        opened = self._open.get(key)
        if opened is None:
            setup = self._setups.get(key)
            if setup is None:
                raise DatabaseUnavailable("UnknownDatabase", f"There is no database {key[1]!r} any more.")
            opened = self._open[key] = _Open(self._open_one(setup), setup)
        return opened

    def _close_if_idle(self, opened: _Open) -> None:
        if opened.retired and not opened.users:
            opened.retired = False
            task = asyncio.ensure_future(opened.database.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


def _open(setup: DatabaseSetup) -> Database:
    resource = setup.database
    if setup.dsn is None:
        raise DatabaseUnavailable(
            "SecretMissing",
            f"Database {resource.name!r} has no address: the secret {resource.dsn_secret_ref} is missing or empty.",
        )
    return open_database(
        name=resource.name,
        dialect=resource.dialect,
        dsn=setup.dsn,
        base_dir=Path.cwd(),
        include=resource.include or (),
        exclude=resource.exclude,
        sample_values=resource.sample_values,
        refresh_seconds=resource.refresh_seconds,
    )
