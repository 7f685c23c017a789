"""Least laxity first, each call by itself: the least time between now and its deadline once it is done.

Source: Mok, "Fundamental design problems of distributed systems for the hard-real-time environment"
(MIT, 1983); the "LLF per call" that HexAGenT (arXiv 2605.16637) and others compare with. A call knows
its query's deadline and its own seconds, and nothing of the stages after it: that is what it lacks
against ``Urgency`` and ``LatestStart``. All laxities on an instance shrink alike, so the static key
``deadline - t_comp`` gives their order.
"""

from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.ordering.deadline import due


class LeastLaxity:
    """Order calls by the latest instant at which each could start and end before its query's deadline."""

    name: ClassVar[str] = "LeastLaxity"

    def key(self, active: ActiveCall, /) -> float:
        """Return that instant: the deadline less the seconds of the call alone."""
        return due(active) - active.alone_seconds

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return it in milliseconds since the epoch."""
        return round(self.key(active) * 1000)
