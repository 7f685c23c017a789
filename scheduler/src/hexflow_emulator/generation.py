"""A request on its way through the emulated engine, and the runner that keeps the engine's time.

The runner gives the pure engine model a clock: it sleeps until the engine's next event, lets time pass
in it, and tells each generation how far it is. Everything here is in emulated seconds but the sleep.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hexflow_simulator import Engine, EngineRequest, Finished

TICK_SECONDS = 0.01
"""Real seconds between two looks at tokens in the making: at high time scales they come several at once."""


@dataclass(slots=True, kw_only=True, eq=False)
class Generation:
    """Follow one sample through the engine."""

    request: EngineRequest
    changed: asyncio.Event
    """Set whenever any sample of the same HTTP request is further."""
    watched: bool
    """Whether somebody wants to see tokens as they come."""
    reason: str = "stop"
    """Why it will end: OpenAI's finish_reason."""
    written: int = 0
    cached_tokens: int = 0
    result: Finished | None = None
    aborted: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.result is not None or self.aborted


@dataclass(slots=True, kw_only=True, eq=False)
class Runner:
    """Run an engine model against a clock."""

    engine: Engine
    clock: Callable[[], float]
    """Emulated seconds."""
    sleep: Callable[[float], Awaitable[None]]
    """Sleeps so many emulated seconds."""
    tick_seconds: float
    """Emulated seconds between two looks at tokens in the making."""
    on_finished: Callable[[Generation, Finished], None] = lambda generation, finished: None
    slowness: float = 1.0
    """How many times as long everything takes (a fault)."""
    _generations: dict[str, Generation] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _looked: float | None = None
    _passed: float = 0.0
    _told: float = float("-inf")
    """When somebody was last told of new tokens."""
    _frozen_until: float = float("-inf")

    def now(self) -> float:
        """Return the engine's own time: emulated time, less what it stood still or was slow."""
        clock = self.clock()
        if self._looked is None:
            self._looked = self._passed = clock
        clock = max(clock, self._looked)
        still = max(0.0, min(clock, self._frozen_until) - self._looked)
        self._passed += (clock - self._looked - still) / self.slowness
        self._looked = clock
        return self._passed

    def set_slowness(self, factor: float) -> None:
        """Let the engine take so many times as long from now on."""
        self.now()
        self.slowness = factor
        self._changed.set()

    def freeze(self, seconds: float) -> None:
        """Let the engine stand still."""
        self.now()
        self._frozen_until = self.clock() + seconds
        self._changed.set()

    def start(self, generation: Generation, *, arrived: float) -> None:
        """Hand a request to the engine. Raises RequestTooLargeError.

        ``arrived`` is when its first byte came, by ``now()``: what reading it took is part of the fixed
        cost of a call, which the engine adds.
        """
        self.engine.submit(arrived, generation.request)
        self._generations[generation.request.request_id] = generation
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="emulated engine")
        self._changed.set()

    def cancel(self, generation: Generation) -> None:
        """Withdraw a request, if it is still there, and free the engine."""
        self._generations.pop(generation.request.request_id, None)
        if not generation.over:
            generation.aborted = True
            self.engine.cancel(self.now(), generation.request.request_id)
            generation.changed.set()
            self._changed.set()

    def abort_all(self) -> None:
        """Withdraw everything, as an engine that is told to stop."""
        for generation in list(self._generations.values()):
            self.cancel(generation)

    @property
    def idle(self) -> bool:
        """Whether nothing is in the engine."""
        return not self._generations

    def look(self) -> None:
        """Let time pass in the engine and tell every generation how far it is."""
        now = self.now()
        for finished in self.engine.advance(now):
            generation = self._generations.pop(finished.request_id, None)
            if generation is not None:
                generation.result = finished
                generation.written = finished.output_tokens
                generation.cached_tokens = finished.cached_tokens
                generation.changed.set()
                self.on_finished(generation, finished)
        for generation in self._generations.values():
            if generation.watched:
                progress = self.engine.progress(now, generation.request.request_id)
                if progress is not None and progress.output_tokens > generation.written:
                    generation.written = progress.output_tokens
                    self._told = now
                    generation.changed.set()

    async def _run(self) -> None:
        try:
            await self._keep_time()
        except Exception:
            for (
                generation
            ) in self._generations.values():  # nobody may wait for ever for a runner that is gone
                generation.aborted = True
                generation.changed.set()
            self._generations.clear()
            raise

    async def _keep_time(self) -> None:
        while self._generations:
            self.look()
            now = self.now()
            wake = self.engine.next_event()
            if wake is None:
                break
            if any(generation.watched for generation in self._generations.values()):
                step = self.engine.next_step(now)
                if step is not None:
                    wake = min(wake, max(step, self._told + self.tick_seconds))
            self._changed.clear()
            if not self._generations:
                break
            seconds = (wake - now) * self.slowness + max(0.0, self._frozen_until - self.clock())
            # A shorter sleep might not move a clock that counts from the epoch in floats.
            await self._sleep_or_change(max(self.tick_seconds / 1000, seconds))

    async def _sleep_or_change(self, seconds: float) -> None:
        sleeping = asyncio.ensure_future(self.sleep(seconds))
        changing = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({sleeping, changing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sleeping, changing):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
