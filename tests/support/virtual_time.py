"""An event loop whose time is virtual: it jumps to the next timer instead of waiting for it.

For what runs wholly in this process (no sockets): hours pass in moments, and the same run comes out the same.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

EPOCH = 1_800_000_000.0
"""The instant at which virtual time begins, in seconds since the epoch."""


class _Jumping(selectors.SelectSelector):
    """Never wait: let the loop's time jump to when it would have woken."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing will ever happen any more: everything waits and no timer is set")
        if not ready and timeout:
            self.passed += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Run callbacks in the order of virtual time."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return virtual seconds since the start: counted from the epoch, short sleeps would be lost in the float."""
        return self._jumping.passed


def now() -> float:
    """Return the running loop's seconds since the epoch: the clock to hand to what takes one."""
    return EPOCH + asyncio.get_running_loop().time()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
