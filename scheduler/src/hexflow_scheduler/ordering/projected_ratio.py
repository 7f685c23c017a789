"""Projected ratio: the query that will be latest for its size goes first (HexAGenT).

Source: Peng et al., "HexAGenT: Efficient Agentic LLM Serving via Workflow- and Heterogeneity-Aware
Scheduling" (arXiv 2605.16637), the projected ratio of a ready call,

    R = (time since its query arrived + seconds until the call would be done) / standalone horizon

the largest first. The standalone horizon is how long the stages revealed so far would take with nothing
else around: the longest path of calls up to this one, each at its seconds alone.

Where it differs: the authors place prefill and decode on instances of their own and know the transfer
between them; an engine here does both. Their horizon is that of the query's longest path, here it is
that of the path to the call itself; siblings are alike. Ratios of different horizons grow at different
paces, so calls are grouped by horizon, rounded to 10 %, within which their order stands still.
"""

from collections.abc import Hashable
from math import inf
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.call import Usage
from hexflow_scheduler.levels import Levels

ROUNDING = 1.1
"""Ratio of neighbouring horizons."""


class ProjectedRatio:
    """Order calls by how many times its standalone horizon their query will have taken when they end."""

    name: ClassVar[str] = "ProjectedRatio"

    def __init__(self) -> None:
        self._levels = Levels(ROUNDING)
        self._calls: dict[str, float] = {}
        """Seconds alone along its query's longest path of answered calls, as each live call was released."""

    def key(self, active: ActiveCall, /) -> float:
        """Return the instant from which the ratio counts: the query's arrival less the call's seconds."""
        self._calls.setdefault(active.call.call_id, self._path(active))
        return active.query.arrival - active.predicted_seconds

    def group(self, active: ActiveCall, /) -> Hashable:
        """Return the class of the horizon."""
        horizon = self._horizon(active)
        return self._levels.level(horizon) if horizon > 0 else None

    def place(self, now: float, head: ActiveCall, /) -> float:
        """Return the ratio, negated."""
        horizon = self._horizon(head)
        if horizon <= 0:
            return -inf
        # Rounding lets equals be equal: a quotient may differ in its last bit with the unit.
        return -round((now - head.key) / self._levels.number(self._levels.level(horizon)), 6)

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return None: ratios of different instants cannot be compared."""
        return None

    def sent(self, now: float, active: ActiveCall, /) -> None:
        """Nothing is learned from that."""

    def ended(self, now: float, active: ActiveCall, usage: Usage | None, /) -> None:
        """Extend the query's path by this call, if it was answered."""
        before = self._calls.pop(active.call.call_id, 0.0)
        if usage is not None:
            path = before + active.alone_seconds
            active.query.notes[self.name] = (max(path, self._path(active)),)

    def _path(self, active: ActiveCall) -> float:
        return active.query.notes.get(self.name, (0.0,))[0]

    def _horizon(self, active: ActiveCall) -> float:
        return self._calls[active.call.call_id] + active.alone_seconds
