"""Latest start: the call that must start first if its query is to be in time.

Like Deadline, less what is still to come: the seconds of the call alone and of the stages after it. The
slack of a query, with what its workflow was observed to take.

Source: least slack time first, as old as ``LeastLaxity``; the rest of the workflow in it is ours.
"""

from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.ordering.deadline import due


class LatestStart:
    """Order calls by the latest instant at which they could start with their query in time."""

    name: ClassVar[str] = "LatestStart"

    def key(self, active: ActiveCall, /) -> float:
        """Return that instant: the query's deadline less the rest of the query and the call alone."""
        return due(active) - active.rest_seconds - active.alone_seconds

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return it in milliseconds since the epoch."""
        return round(self.key(active) * 1000)
