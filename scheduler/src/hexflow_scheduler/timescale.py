"""Emulated time: how much faster than the wall clock everything runs (``--time-scale``).

Pure arithmetic; whoever uses it brings the reading of a real clock.
"""

from dataclasses import dataclass
from math import isfinite

from hexflow_scheduler.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Map real seconds to emulated ones and back.

    All deadlines, instants and reports are in emulated seconds; only a sleep and a time-out are real.
    """

    factor: float = 1.0
    """Emulated seconds that pass in a real one; 1 is real time."""
    origin: float = 0.0
    """The real instant at which both clocks read the same (seconds since the epoch)."""

    def __post_init__(self) -> None:
        if not (isfinite(self.factor) and self.factor > 0 and isfinite(self.origin)):
            raise InvalidInput(f"a time scale is a positive number, not {self.factor!r}; 1 is real time")

    def emulated(self, real_now: float) -> float:
        """Return the emulated instant at a real one."""
        return self.origin + (real_now - self.origin) * self.factor

    def real_seconds(self, seconds: float) -> float:
        """Return how many real seconds a span of emulated seconds lasts."""
        return seconds / self.factor

    def emulated_seconds(self, real_seconds: float) -> float:
        """Return how many emulated seconds a span of real seconds lasts."""
        return real_seconds * self.factor
