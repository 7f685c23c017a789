"""What the stages need of a database."""

from typing import Protocol

from hexflow_sql.limits import Limits
from hexflow_sql.result import Result
from hexflow_sql.schema import Schema
from hexflow_sql.values import ValueIndex


class Database(Protocol):
    """Run one statement at a time, read-only, and describe what can be asked."""

    @property
    def name(self) -> str:
        """The name questions use."""
        ...

    @property
    def dialect(self) -> str:
        """The dialect of its statements, as the parser calls it: ``sqlite``, later ``postgres``, …"""
        ...

    async def schema(self) -> Schema:
        """Describe the tables, from memory while nothing changed. Raises DatabaseUnavailable."""
        ...

    async def values(self) -> ValueIndex:
        """Index the distinct texts of the cells, from memory while nothing changed. Raises DatabaseUnavailable."""
        ...

    async def execute(self, sql: str, limits: Limits) -> Result:
        """Run one statement through all layers of safety, in a new read-only transaction.

        Raises StatementRefused before the database sees it, StatementFailed after, DatabaseUnavailable when
        the database is gone. Cancelling the awaiting task stops the statement.
        """
        ...

    async def close(self) -> None:
        """Stop what runs and let go of every connection."""
        ...
