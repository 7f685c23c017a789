"""QLM: groups of like requests, the group whose first deadline is nearest goes next.

Source: Patke et al., "Queue Management for SLO-Oriented Large Language Model Serving" (arXiv 2407.00047,
SoCC 2024), its request groups and global scheduler; ``qlm/scheduler/scheduler.py`` of QLM-project/QLM.
Requests of one model and a like SLO form a group, served in order of arrival; groups are ordered as wholes,
which keeps their number, and so the scheduler's work, small.

Where it differs: the authors order groups by a linear programme over the estimated waiting times, and by
earliest deadline where it finds no order that keeps all SLOs. On one instance without model swapping,
which is what a queue here is, earliest deadline first finds an order without a miss whenever there is one,
so the estimator would only say when not to bother, and groups are always ordered so. Requests that run
are not evicted: a call that the kernel sent is never taken back for another.
"""

from collections.abc import Hashable
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.levels import Levels
from hexflow_scheduler.ordering.deadline import due

LIKE = 1.25
"""SLOs within this factor are of one group."""


class QLM:
    """Order groups of a model and an SLO by their first deadlines, and each group's calls by arrival."""

    name: ClassVar[str] = "QLM"

    def __init__(self) -> None:
        self._slos = Levels(LIKE)

    def key(self, active: ActiveCall, /) -> float:
        """Return the instant of arrival."""
        return active.released

    def group(self, active: ActiveCall, /) -> Hashable:
        """Return the call's model and the class of its query's SLO."""
        return active.call.model, self._slos.level(active.query.slo_seconds)

    def place(self, now: float, head: ActiveCall, /) -> float:
        """Return the deadline of the call that goes first."""
        return due(head)

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return the query's deadline in milliseconds since the epoch."""
        return round(due(active) * 1000)
