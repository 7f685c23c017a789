"""Urgency: by how many seconds a waiting call is expected to overrun its budget.

``urgency = t_comp - (t_slo - waited)`` grows by one second a second for every call on an instance, so
the order of two waiting calls never changes. What is kept is the instant at which it passes zero, the
latest start; a queue sorted by it needs no re-sorting.
"""

RELAXED = 5.0
"""Times its own expected seconds that a call without deadline and budget is given (the study's class mean)."""


def time_allowed(
    *, released: float, deadline: float | None, budget_seconds: float | None, typical_seconds: float
) -> float:
    """Return the seconds a call may take from its release: t_slo.

    Its budget; else what was left until its deadline; else ``RELAXED`` times what such a call takes.
    """
    if budget_seconds is not None:
        return budget_seconds
    if deadline is not None:
        return deadline - released
    return RELAXED * typical_seconds


def latest_start(*, released: float, allowed: float, compute_seconds: float) -> float:
    """Return the instant at which the call must start to end in time."""
    return released + allowed - compute_seconds


def urgency(now: float, latest: float) -> float:
    """Return the seconds by which ``now`` is past the latest start; negative while there is slack."""
    return now - latest
