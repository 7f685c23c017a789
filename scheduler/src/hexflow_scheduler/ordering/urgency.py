"""Urgency: the call that is expected to overrun its budget by most goes first. The paper's queue rule.

Source: HexGen-Flow (arXiv 2505.05286), ``urgency = t_comp - (t_slo - waited)``. All urgencies on one
instance grow alike, so the static key ``released + t_slo - t_comp`` gives the same order.
"""

from typing import ClassVar

from hexflow_scheduler.active import ActiveCall


class Urgency:
    """Order calls by their latest start, the earliest first."""

    name: ClassVar[str] = "Urgency"

    def key(self, active: ActiveCall, /) -> float:
        """Return the latest start: the instant at which the call's urgency passes zero."""
        return active.latest_start

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return the latest start in milliseconds since the epoch."""
        return round(active.latest_start * 1000)
