"""Keys that wait to be reconciled: each once, never two workers on one, and not too often.

After the model of controller-runtime's queue. A key that is added while it is worked on comes again afterwards; one
that failed comes again after a growing, jittered pause; one that changes all the time is worked on once in
``spacing_seconds``, at once only after a rest. Time is the running loop's.
"""

import asyncio
import heapq
import random
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Say how long a key that failed again and again has to wait."""

    first_seconds: float = 0.5
    longest_seconds: float = 300.0

    def pause(self, failures: int, chance: float) -> float:
        """Return the pause after so many failures in a row; ``chance`` (0 to 1) spreads it over its upper half."""
        whole = min(self.longest_seconds, self.first_seconds * 2.0 ** min(failures - 1, 30))
        return whole * (0.5 + chance / 2)


class WorkQueue(Generic[K]):
    """Hold keys until they are due and hand each to one worker at a time."""

    def __init__(
        self,
        *,
        backoff: Backoff | None = None,
        spacing_seconds: float = 1.0,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._backoff = backoff or Backoff()
        self._spacing = spacing_seconds
        self._chance = chance
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = count()
        self._active: dict[K, float] = {}
        self._again: dict[K, float] = {}
        """When a key that is being worked on is due once more."""
        self._rested: dict[K, float] = {}
        """From when on a key may be worked on at once."""
        self._failures: dict[K, int] = {}
        self._woken = asyncio.Event()

    def __len__(self) -> int:
        """Count the keys that are due or being worked on; those that are only looked at again later do not count."""
        now = self._now()
        return len(self._active) + sum(due <= now for due in self._due.values())

    def add(self, key: K) -> None:
        """Have a key worked on as soon as may be, because something changed."""
        if key in self._failures and key in self._due:
            return  # it waits out its pause: a change elsewhere does not make the API server well again
        self._schedule(key, max(self._now(), self._rested.get(key, 0.0)))

    def pardon(self, key: K) -> None:
        """Forget a key's failures, because a person has changed what it asks for: the next `add` is not kept waiting."""
        self._failures.pop(key, None)

    def add_after(self, key: K, seconds: float) -> None:
        """Have a key worked on after a while, or earlier if it is due earlier."""
        self._schedule(key, self._now() + seconds)

    async def take(self) -> K:
        """Return a key that is due, once there is one; `finish` or `fail` has to follow."""
        while True:
            now = self._now()
            while self._heap and self._heap[0][0] <= now:
                due, _, key = heapq.heappop(self._heap)
                if self._due.get(key) == due:
                    del self._due[key]
                    self._active[key] = now
                    return key
            self._woken.clear()
            try:
                async with asyncio.timeout(self._heap[0][0] - now if self._heap else None):
                    await self._woken.wait()
            except TimeoutError:
                continue

    def finish(self, key: K, *, again_after: float | None = None) -> None:
        """Note that the work on a key went well."""
        self._failures.pop(key, None)
        self._leave(key, again_after)

    def fail(self, key: K) -> float:
        """Note that the work on a key failed; return the seconds after which it is tried again."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = self._backoff.pause(failures, self._chance())
        self._again.pop(key, None)  # whatever changed meanwhile is seen then
        self._leave(key, pause)
        return pause

    def forget(self, key: K) -> None:
        """Drop what is remembered of a key whose object is gone; it may be added again."""
        self._failures.pop(key, None)
        self._rested.pop(key, None)
        if key not in self._active:
            self._due.pop(key, None)

    def longest_active_seconds(self) -> float:
        """Return for how long the oldest piece of work has been going on; 0.0 where there is none."""
        return max((self._now() - since for since in self._active.values()), default=0.0)

    async def work(self, do: Callable[[K], Awaitable[None]]) -> None:
        """Take keys for ever and have each done; ``do`` calls `finish` or `fail`. Run several for several workers."""
        while True:
            await do(await self.take())

    def _leave(self, key: K, again_after: float | None) -> None:
        now = self._now()
        self._active.pop(key, None)
        self._rested[key] = now + self._spacing
        due = self._again.pop(key, None)
        if due is not None:
            self._schedule(key, max(due, self._rested[key]))
        if again_after is not None:
            self._schedule(key, now + again_after)

    def _schedule(self, key: K, due: float) -> None:
        waiting = self._again if key in self._active else self._due
        if waiting.get(key, float("inf")) <= due:
            return
        waiting[key] = due
        if waiting is self._due:
            heapq.heappush(self._heap, (due, next(self._numbers), key))
            self._woken.set()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
