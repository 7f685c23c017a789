"""Deadline: the calls of the query that must be answered first. What goes with LeastHarm.

A late stage of an urgent query goes before an early stage of a relaxed one, and all calls of a query
stand together; the seconds of a single call play no part. In the study behind LeastHarm no other key
was better where slots or KV run out, and with room for all none made a difference.
"""

from typing import ClassVar

from hexflow_scheduler.active import ActiveCall


class Deadline:
    """Order calls by the deadline of their query."""

    name: ClassVar[str] = "Deadline"

    def key(self, active: ActiveCall, /) -> float:
        """Return the deadline; of a query without one, the instant by which such queries are answered."""
        return due(active)

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return in milliseconds when the call would have to start to be done by then."""
        return round((due(active) - active.alone_seconds) * 1000)


def due(active: ActiveCall) -> float:
    """Return the instant by which the call's query is to be answered."""
    return active.query.arrival + active.query.slo_seconds
