"""One simulated server: an engine model at the pace of the simulation, however slow it is made.

It keeps the engine's own time, as the emulator does: while a server is slow, less of it passes.
"""

from collections.abc import Callable
from math import inf
from typing import Protocol

from hexflow_scheduler import Instance
from hexflow_simulator.engine import Engine
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.request import EngineRequest, Finished


class EngineModel(Protocol):
    """Model an inference engine under explicit time; ``now`` never decreases from call to call."""

    def submit(self, now: float, request: EngineRequest, /) -> None:
        """Hand in a request. Raises RequestTooLargeError where it could never fit."""
        ...

    def cancel(self, now: float, request_id: str, /) -> bool:
        """Withdraw a request; return whether it was there."""
        ...

    def advance(self, now: float, /) -> list[Finished]:
        """Let time pass and return what finished since the last call, in order."""
        ...

    def next_event(self) -> float | None:
        """Return the next instant at which something may change; None while nothing is to be done."""
        ...

    def next_finish(self) -> float | None:
        """Return an instant before which nothing finishes and no earlier than the next event; None where that is."""
        ...


EngineFactory = Callable[[SimulatedInstance], EngineModel]


def continuous_batching(source: SimulatedInstance) -> EngineModel:
    """Return our engine model of an instance (``engine``)."""
    return Engine(source.true_profile, source.options)


class Server:
    """Keep what a simulation knows of one server."""

    __slots__ = (
        "_paces",
        "_true",
        "calls",
        "due",
        "engine",
        "instance",
        "rank",
        "source",
        "wake",
    )

    def __init__(
        self, now: float, *, source: SimulatedInstance, instance: Instance, engine: EngineModel, rank: int
    ) -> None:
        self.source = source
        self.instance = instance
        """As it was last told to the kernel."""
        self.engine: EngineModel | None = engine
        """None once it is dead."""
        self.rank = rank
        self.wake = inf
        """Instant of its entry among the events that counts; others are stale."""
        self.due = now
        """What the engine's own clock shows then."""
        self.calls: dict[str, None] = {}
        """Ids of the calls that it was sent, in order."""
        self._paces: list[tuple[float, float, float]] = [(now, now, source.slowdown)]
        """Since when, by the simulation's clock and by the engine's, everything takes how many times as long."""
        self._true = source.slowdown == 1.0
        """Whether it has always kept the pace of its profile, so that both clocks show the same."""

    @property
    def instance_id(self) -> str:
        """The id under which the kernel knows it."""
        return self.instance.instance_id

    def engine_time(self, now: float) -> float:
        """Return what the engine's own clock shows."""
        if self._true:
            return now
        origin, shown, factor = self._paces[-1]
        return shown + (now - origin) / factor

    def instant(self, engine_time: float) -> float:
        """Return when the engine's own clock showed that, or will at its present pace."""
        if self._true:
            return engine_time
        place = len(self._paces) - 1
        while place and engine_time < self._paces[place][1]:
            place -= 1
        origin, shown, factor = self._paces[place]
        return origin + (engine_time - shown) * factor

    def set_pace(self, now: float, factor: float) -> None:
        """Let everything take ``factor`` times what its profile says from now on."""
        self._paces.append((now, self.engine_time(now), factor))
        self._true = False
