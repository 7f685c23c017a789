"""Running the statements of one query: each text once, within the time left."""

import asyncio
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hexflow_sql.database.protocol import Database
from hexflow_sql.draft import Candidate
from hexflow_sql.errors import StatementError
from hexflow_sql.result import Result
from hexflow_sql.stage.events import Observer, StatementTried
from hexflow_sql.stage.protocol import StageSettings, TimeLeft

LEAST_SECONDS = 0.5
"""What a statement gets of a query that is late already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Hold what a statement gave."""

    result: Result | None = None
    error: str | None = None
    reason: str | None = None


class Statements:
    """Run statements for one stage of one query; the same text runs once and its outcome is shared."""

    def __init__(
        self,
        *,
        database: Database,
        settings: StageSettings,
        time_left: TimeLeft,
        observe: Observer,
        known: Iterable[Candidate] = (),
    ) -> None:
        self._database = database
        self._settings = settings
        self._time_left = time_left
        self._observe = observe
        self._running: dict[str, asyncio.Task[Outcome]] = {}
        self._known = {
            folded(candidate.sql): Outcome(
                result=candidate.result, error=candidate.error, reason=candidate.reason
            )
            for candidate in known
            if candidate.sql is not None and (candidate.result is not None or candidate.error is not None)
        }

    async def run(self, sql: str, *, candidate: int, round: int) -> Outcome:
        """Run a statement, or share the outcome of the same text. Raises DatabaseUnavailable."""
        text = folded(sql)
        outcome = self._known.get(text)
        reused = outcome is not None or text in self._running
        if outcome is None:
            task = self._running.get(text)
            if task is None:
                task = asyncio.ensure_future(self._execute(sql))
                self._running[text] = task
            outcome = await asyncio.shield(task)
            self._known[text] = outcome
        result = outcome.result
        self._observe(
            StatementTried(
                stage=self._settings.name,
                candidate=candidate,
                round=round,
                sql=sql,
                rows=None if result is None else len(result.rows),
                truncated=result is not None and result.truncated,
                error=outcome.error,
                reason=outcome.reason,
                seconds=0.0 if result is None or reused else result.seconds,
                reused=reused,
            )
        )
        return outcome

    async def close(self) -> None:
        """Stop what still runs."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _execute(self, sql: str) -> Outcome:
        left = self._time_left()
        limits = self._settings.limits
        seconds = limits.seconds if math.isinf(left) else min(limits.seconds, max(left, LEAST_SECONDS))
        try:
            return Outcome(result=await self._database.execute(sql, replace(limits, seconds=seconds)))
        except StatementError as error:
            return Outcome(error=error.message, reason=error.reason)


def folded(sql: str | None) -> str:
    """Return what two statements must share to be the same text."""
    return (sql or "").strip().rstrip(";").rstrip()
