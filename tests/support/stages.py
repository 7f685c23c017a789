"""Running one stage in a test: what it was asked, what it told, what it returned."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hexflow_sql import (
    Database,
    DatabaseUnavailable,
    Draft,
    Event,
    LanguageModel,
    Limits,
    Result,
    Schema,
    Skipped,
    StageSettings,
    StatementFailed,
    build_stage,
)
from hexflow_sql.values import ValueIndex


@dataclass(slots=True)
class Clock:
    """Time left, moved by the test; whoever sleeps wakes when the test moves it far enough."""

    left: float = math.inf
    _sleepers: list[tuple[float, "asyncio.Future[None]"]] = field(default_factory=list)

    def time_left(self) -> float:
        return self.left

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.left - seconds, future))
        await future

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.left -= seconds
        for until, future in self._sleepers:
            if self.left <= until and not future.done():
                future.set_result(None)


async def run_stage(
    kind: str,
    draft: Draft,
    *,
    model: LanguageModel,
    database: Database,
    clock: Clock | None = None,
    events: list[Event] | None = None,
    **settings: object,
) -> Draft:
    """Run one stage under its own name in small letters."""
    clock = clock or Clock()
    stage = build_stage(kind, StageSettings(name=kind.lower(), **settings))  # type: ignore[arg-type]
    told = events if events is not None else []
    return await stage.run(
        draft,
        model=model,
        database=database,
        time_left=clock.time_left,
        observe=told.append,
        sleep=clock.sleep,
    )


def skipped(draft: Draft) -> list[str]:
    """List what was left out, for short asserts."""
    return [f"{entry.what}: {entry.why}" for entry in draft.skipped if isinstance(entry, Skipped)]


@dataclass(slots=True)
class ScriptedDatabase:
    """A database that answers as told and counts what it ran; for timing that a file cannot show."""

    known_schema: Schema
    run: Callable[[str], Result | StatementFailed | DatabaseUnavailable | Awaitable[Result]]
    ran: list[str] = field(default_factory=list)
    limits: list[Limits] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    index: ValueIndex = field(default_factory=ValueIndex)
    name: str = "scripted"
    dialect: str = "sqlite"

    async def schema(self) -> Schema:
        return self.known_schema

    async def values(self) -> ValueIndex:
        return self.index

    async def execute(self, sql: str, limits: Limits) -> Result:
        self.ran.append(sql)
        self.limits.append(limits)
        await asyncio.sleep(0)
        outcome = self.run(sql)
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome, Result):
            return outcome
        try:
            return await outcome
        except asyncio.CancelledError:
            self.stopped.append(sql)
            raise

    async def close(self) -> None:
        return
