"""A token bucket: so many a second on average, a burst at once, and everybody waits in turn."""

import asyncio
from collections.abc import Callable


class TokenBucket:
    """Let ``rate`` pass in a second and ``burst`` at once; first come, first served.

    ``clock`` is any that only goes forward, in seconds; by default the running loop's.
    """

    def __init__(self, *, rate: float, burst: int, clock: Callable[[], float] | None = None) -> None:
        self._rate, self._burst = rate, float(burst)
        self._clock = clock
        self._tokens = float(burst)
        self._at: float | None = None

    async def take(self) -> None:
        """Return when it is this caller's turn."""
        now = self._clock() if self._clock else asyncio.get_running_loop().time()
        if self._at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        self._tokens -= 1.0  # below zero: what has been promised to those who wait
        if self._tokens < 0:
            try:
                await asyncio.sleep(-self._tokens / self._rate)
            except asyncio.CancelledError:
                self._tokens += 1.0
                raise
