"""Wait for what happens in another process."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], *, seconds: float = 10.0) -> None:
    """Return as soon as the condition holds; fail when it still does not after a generous while."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not come true within {seconds:g} s"
        time.sleep(0.05)
