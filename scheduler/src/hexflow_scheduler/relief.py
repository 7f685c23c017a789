"""Relief: what may be done where a fleet cannot be in time for all. Nothing of it happens unless it is asked for.

Three ways, each seen in a decision or an answer, none silent: a query that cannot be in time any more gives
way to others (``Place.demoted``); the last chain of a late query is given up where its stage can do without
(``Outcome.DROPPED``); and a query that would be late anywhere can be refused at the door (``Admission``).
"""

from dataclasses import dataclass
from math import isfinite

from hexflow_scheduler.active import ActiveCall, OpenQuery
from hexflow_scheduler.call import Call
from hexflow_scheduler.errors import InvalidParameter
from hexflow_scheduler.estimate import Estimates
from hexflow_scheduler.fleet import Fleet

DEMOTION = 10.0
"""How many times as long the SLO of a query counts that gives way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """Say what may be done; a part of a policy."""

    demote: float = 0.0
    """Share of the open queries that may give way once they cannot be in time; 0 for none, and for every
    objective but attainment: a late query that gives way gets later."""
    drop: float = 0.0
    """Times the mean of its workflow that a query is late by when its last chain is given up; 0 for never."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.demote <= 1.0:
            raise InvalidParameter(f"demote is a share between 0 and 1, not {self.demote!r}")
        if not (isfinite(self.drop) and (self.drop == 0.0 or self.drop >= 1.0)):
            raise InvalidParameter(f"drop is 0, or a factor of 1 or more, not {self.drop!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Say whether a query that comes now could be answered in time."""

    admitted: bool
    expected_seconds: float
    """What it is expected to take, from now to its answer; 0 where nothing is known yet."""
    retry_after_seconds: float = 0.0
    """By how much that is too long: what has to pass before it is worth asking again."""
    share: float = 1.0
    """What share of the work would fit the time, for whoever rather answers with fewer candidates."""


def hopeless(now: float, active: ActiveCall, fleet: Fleet) -> bool:
    """Say whether a call's query will be late even if the call is alone on the instance that is fastest for it."""
    if active.call.deadline is None:
        return False
    fastest = min(load.alone_seconds(active) for load in fleet.candidates(active))
    return now + fastest + active.rest_seconds > active.call.deadline


def demote(active: ActiveCall, fleet: Fleet) -> None:
    """Let a query give way: whatever weighs or orders by its SLO finds it longer."""
    query = active.query
    query.slo_seconds = DEMOTION * fleet.slo_seconds(active)
    query.demoted = True


def dispensable(
    now: float, query: OpenQuery, answered: Call, estimates: Estimates, factor: float
) -> ActiveCall | None:
    """Return the last chain of a late query, if its stage can do without it now that another call is answered."""
    if len(query.calls) != 1:
        return None
    (last,) = query.calls.values()
    typical = estimates.query_seconds(query.workflow)
    if typical is None or not last.call.optional or last.call.stage != answered.stage:
        return None
    expected = now - query.arrival + last.rest_seconds
    return last if expected > factor * typical else None


def admission(now: float, active: ActiveCall, fleet: Fleet, *, slo_seconds: float) -> Admission:
    """Return whether a query whose first call would be ``active`` could be in time on the instance soonest done.

    From how busy each instance is now, and from how long queries went on after such a call. While the latter is
    unknown everything is admitted.
    """
    rest = active.rest_seconds
    candidates = fleet.candidates(active)
    if not candidates or not rest:
        return Admission(admitted=True, expected_seconds=0.0)
    soonest = min(load.finish_seconds(now, active) for load in candidates)
    expected = soonest + rest
    late = expected - slo_seconds
    if late <= 0:
        return Admission(admitted=True, expected_seconds=expected)
    return Admission(
        admitted=False,
        expected_seconds=expected,
        retry_after_seconds=late,
        share=max(0.0, slo_seconds) / expected,
    )
