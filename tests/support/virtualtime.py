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
    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(min(self.loop.patience, timeout) if timeout else 0)
        if not ready and timeout is None:
            raise RuntimeError("nothing will ever happen any more: everything waits and no timer is set")
        if not ready and timeout:
            self.loop.jump(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Run callbacks in the order of virtual time."""

    def __init__(self, patience: float = 0.0) -> None:
        """Start at nought. ``patience``: real seconds that threads get before time jumps on."""
        self.patience = patience
        selector = _Jumping()
        selector.loop = self
        self._virtual = 0.0
        super().__init__(selector)

    def time(self) -> float:
        """Return virtual seconds since the start."""
        return self._virtual

    def jump(self, seconds: float) -> None:
        """Let time pass."""
        self._virtual += seconds

    def clock(self) -> float:
        """Return virtual seconds since the epoch."""
        return EPOCH + self._virtual


def run_virtually(work: Coroutine[Any, Any, T], *, patience: float = 0.0) -> T:
    """Run to the end in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(patience)) as runner:
        return runner.run(work)


def virtual_clock() -> float:
    """Return the running loop's virtual seconds since the epoch."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.clock()
