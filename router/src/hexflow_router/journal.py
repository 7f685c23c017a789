"""The journal of async queries: what was promised to a client that went away and will come back.

One SQLite file (or memory), written through aiosqlite so that no disk stalls the event loop. Instants
are wall-clock seconds, whatever the time scale: a journal outlives a process. It knows queries as an
id, a few columns to find them by and the answer's JSON, nothing more.
"""

import asyncio
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import aiosqlite

_SCHEMA = """
CREATE TABLE IF NOT EXISTS query (
    id TEXT PRIMARY KEY,
    workflow TEXT NOT NULL,
    tenant TEXT NOT NULL,
    accepted_at REAL NOT NULL,
    finished_at REAL,
    answer TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS query_finished ON query (finished_at);
"""
_VERSION = 1


class JournalError(RuntimeError):
    """The journal's file cannot be used; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Hold what the journal knows of a query."""

    query_id: str
    workflow: str
    tenant: str
    accepted_at: float
    finished_at: float | None
    """None while it runs, or where its router died."""
    answer: str
    """JSON of the answer; of a running query, of the answer as it would be if its router died now."""


class Journal:
    """Remember async queries across restarts. Open it with ``Journal.open``."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path | None = None) -> "Journal":
        """Open or make the file; None keeps the journal in memory. Raises JournalError."""
        where = ":memory:" if path is None else str(path)
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            connection = await aiosqlite.connect(where)
        except (OSError, sqlite3.Error) as error:
            raise JournalError(f"The journal {where} cannot be opened: {error}. Name another file.") from None
        try:
            await connection.execute("PRAGMA journal_mode=WAL")
            await connection.execute("PRAGMA synchronous=NORMAL")
            version = await _one(connection, "PRAGMA user_version")
            if version not in (0, _VERSION):
                raise JournalError(
                    f"The journal {where} is of version {version}, this router writes {_VERSION}: name another file."
                )
            await connection.executescript(_SCHEMA)
            await connection.execute(f"PRAGMA user_version={_VERSION}")
            await connection.commit()
        except sqlite3.Error as error:
            await connection.close()
            raise JournalError(
                f"The journal {where} is no journal ({error}): name another file, or remove it."
            ) from None
        except JournalError:
            await connection.close()
            raise
        return cls(connection)

    async def accept(self, entry: Entry) -> None:
        """Write down a query before its client is told that it was accepted."""
        await self._write(
            "INSERT INTO query (id, workflow, tenant, accepted_at, finished_at, answer) VALUES (?, ?, ?, ?, ?, ?)",
            (
                entry.query_id,
                entry.workflow,
                entry.tenant,
                entry.accepted_at,
                entry.finished_at,
                entry.answer,
            ),
        )

    async def finish(self, query_id: str, *, finished_at: float, answer: str) -> None:
        """Write down the answer of a query; the first answer stands."""
        await self._write(
            "UPDATE query SET finished_at = ?, answer = ? WHERE id = ? AND finished_at IS NULL",
            (finished_at, answer, query_id),
        )

    async def find(self, query_id: str) -> Entry | None:
        """Return what is known of a query, None if nothing."""
        found = await self._read(
            "SELECT id, workflow, tenant, accepted_at, finished_at, answer FROM query WHERE id = ?",
            (query_id,),
        )
        return found[0] if found else None

    async def unfinished(self) -> tuple[Entry, ...]:
        """Return the queries that a router accepted and never finished, oldest first."""
        return await self._read(
            "SELECT id, workflow, tenant, accepted_at, finished_at, answer FROM query"
            " WHERE finished_at IS NULL ORDER BY accepted_at",
            (),
        )

    async def prune(self, *, keep: int) -> None:
        """Forget the finished queries but the newest ``keep``."""
        await self._write(
            "DELETE FROM query WHERE finished_at IS NOT NULL AND id NOT IN"
            " (SELECT id FROM query WHERE finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT ?)",
            (keep,),
        )

    async def close(self) -> None:
        """Close the file; what was written is on disk."""
        await self._connection.close()

    async def _write(self, statement: str, values: tuple[object, ...]) -> None:
        async with self._lock:
            await self._connection.execute(statement, values)
            await self._connection.commit()

    async def _read(self, statement: str, values: tuple[object, ...]) -> tuple[Entry, ...]:
        async with self._lock:
            rows = await self._connection.execute_fetchall(statement, values)
        return tuple(
            Entry(
                query_id=row[0],
                workflow=row[1],
                tenant=row[2],
                accepted_at=row[3],
                finished_at=row[4],
                answer=row[5],
            )
            for row in rows
        )


async def _one(connection: aiosqlite.Connection, statement: str) -> object:
    rows = list(await connection.execute_fetchall(statement))
    return rows[0][0]
