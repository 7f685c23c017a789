"""Waiting for completions until they are all there, or until it is late and one will do."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from hexflow_sql.completion import DROPPED, Completion, CompletionError
from hexflow_sql.errors import StageTimedOut
from hexflow_sql.stage.protocol import Sleep, StageSettings, TimeLeft

Ended = Completion | CompletionError | None
"""How a request ended; None where it was withdrawn or dropped."""


async def collect(
    awaitables: Sequence[Awaitable[Completion]],
    *,
    time_left: TimeLeft,
    sleep: Sleep,
    enough: Callable[[Completion], bool],
    settings: StageSettings,
    decided: Callable[[Sequence[Ended]], bool] = lambda _: False,
) -> list[Ended]:
    """Wait for all; once the time is up, withdraw what is missing as soon as one completion is enough.

    ``decided`` looks at what has come so far (None for the rest): where it says so, the rest is withdrawn.
    Cancelling withdraws all of them. Raises StageTimedOut where the stage is set to fail when late.
    """
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    left = time_left()
    timer = None if math.isinf(left) else asyncio.ensure_future(sleep(max(0.0, left)))
    waiting: set[asyncio.Future[Any]] = {*tasks}
    if timer is not None:
        waiting.add(timer)
    try:
        while any(not task.done() for task in tasks):
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if decided([_ended(task) if task.done() else None for task in tasks]):
                break
            if timer is not None and timer.done():
                fail_if_late(settings, time_left)
            if timer is not None and timer.done() and any(_good(task, enough) for task in tasks):
                break
    finally:
        everything = [*tasks, *([timer] if timer is not None else [])]
        for future in everything:
            future.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
    return [_ended(task) for task in tasks]


def fail_if_late(settings: StageSettings, time_left: TimeLeft) -> None:
    """Raise StageTimedOut when it is late and the stage is set to fail then."""
    if settings.on_timeout == "Fail" and time_left() <= 0:
        raise StageTimedOut(f"The deadline passed in stage {settings.name}, which is set to fail then.")


def _good(task: "asyncio.Future[Completion]", enough: Callable[[Completion], bool]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None and enough(task.result())


def _ended(task: "asyncio.Future[Completion]") -> Ended:
    if task.cancelled():
        return None
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, CompletionError):
        return None if error.reason == DROPPED else error
    raise error
