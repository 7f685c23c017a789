"""Wait for what happens elsewhere: in another process, or in another task."""

import asyncio
import time
from collections.abc import Awaitable, Callable


def until(condition: Callable[[], bool], *, seconds: float = 10.0) -> None:
    """Return as soon as the condition holds; fail when it still does not after a generous while."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not come true within {seconds:g} s"
        time.sleep(0.05)


async def eventually(
    condition: Callable[[], object] | Callable[[], Awaitable[object]], *, seconds: float = 10.0
) -> None:
    """Do the same on an event loop; the condition may be a coroutine function."""
    async with asyncio.timeout(seconds):
        while True:
            value = condition()
            if await value if isinstance(value, Awaitable) else value:
                return
            await asyncio.sleep(0.01)
