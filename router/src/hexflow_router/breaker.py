"""A breaker: keeps calls away from an instance that fails them, and lets one through to see whether it still does.

It counts connection errors, 5xx, time-outs and unreadable answers; a 4xx is the caller's and says that the
engine works. A pure state machine: instants are passed in, in real seconds.
"""

from dataclasses import dataclass
from enum import StrEnum


class BreakerState(StrEnum):
    """Say what a breaker lets through."""

    CLOSED = "Closed"
    """Everything."""
    OPEN = "Open"
    """Nothing."""
    TRIAL = "Trial"
    """One call at a time, whose outcome decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRule:
    """Say when a breaker opens and for how long."""

    failures: int = 5
    """Failures in a row that open it."""
    open_seconds: float = 2.0
    """How long it stays open the first time; doubled for each trial that fails."""
    longest_seconds: float = 30.0


class Breaker:
    """Follow the outcomes at one instance."""

    __slots__ = ("_failures", "_rule", "_until", "_wait", "state")

    def __init__(self, rule: BreakerRule | None = None) -> None:
        """Start closed."""
        self._rule = rule or BreakerRule()
        self._failures = 0
        self._wait = self._rule.open_seconds
        self._until = 0.0
        self.state = BreakerState.CLOSED

    def succeeded(self) -> None:
        """Note an answer (a 4xx is one)."""
        self._failures = 0
        self._wait = self._rule.open_seconds
        self.state = BreakerState.CLOSED

    def failed(self, now: float) -> None:
        """Note a connection error, a 5xx, a time-out or an unreadable answer."""
        if self.state is BreakerState.OPEN:
            return
        self._failures += 1
        if self.state is BreakerState.TRIAL:
            self._wait = min(self._wait * 2, self._rule.longest_seconds)
        elif self._failures < self._rule.failures:
            return
        self.state = BreakerState.OPEN
        self._until = now + self._wait

    def look(self, now: float) -> BreakerState:
        """Return the state at ``now``; an open breaker whose time is over lets a trial through."""
        if self.state is BreakerState.OPEN and now >= self._until:
            self.state = BreakerState.TRIAL
        return self.state
