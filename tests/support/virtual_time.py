"""An event loop whose time passes at once: sleeping costs nothing, and every run is the same."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _VirtualSelector(selectors.SelectSelector):
    """Never wait: let the loop's time jump to when it would have woken."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits and nothing will ever happen")
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Run coroutines under virtual time that begins at ``start`` seconds."""

    def __init__(self, *, start: float = 1_000_000.0) -> None:
        self._virtual = _VirtualSelector()
        self._virtual.now = start
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the virtual instant."""
        return self._virtual.now


def now() -> float:
    """Return the running loop's instant: the clock to hand to what takes one."""
    return asyncio.get_running_loop().time()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end under virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
