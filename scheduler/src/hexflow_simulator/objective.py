"""The objective of tuning: what is made better, in the resource's words (``spec.slo.objective``)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from math import inf, isinf, isnan

from hexflow_simulator.capacity import sustainable_rate
from hexflow_simulator.measure import (
    attainment,
    latencies,
    percentile,
    required_scale,
    warmed_up,
)
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.result import QueryResult

SHARE = 0.95
"""Of the queries, that the objectives look at."""
RATE_TOLERANCE = 0.05
"""Within which a sustainable rate is found: each bound is one more run of the whole trace."""


class Objective(StrEnum):
    """Say what tuning makes better."""

    P95 = "P95"
    """Seconds within which 95 of 100 queries are answered."""
    REQ95 = "Req95"
    """The smallest multiple of its SLO within which 95 of 100 queries are answered."""
    ATTAINMENT = "Attainment"
    """Share of the queries that are answered by their deadline."""
    RATE = "Rate"
    """How many times as many queries could come, with 95 of 100 answered by their deadline."""


def score(
    objective: Objective,
    queries: Sequence[SimulatedQuery],
    run: Callable[[Sequence[SimulatedQuery]], Sequence[QueryResult]],
) -> float:
    """Return what ``run`` reaches on queries; NaN where none of them has what the objective is about."""
    if objective is not Objective.RATE:
        return _figure(objective, warmed_up(run(queries)))

    def holds(pace: float) -> bool:
        return attainment(warmed_up(run(hastened(queries, pace)))) >= SHARE

    if all(query.slo_seconds is None for query in queries):
        return float("nan")
    return sustainable_rate(holds, guess=1.0, tolerance=RATE_TOLERANCE) or 0.0


def gain(objective: Objective, *, old: float, new: float) -> float:
    """Return the share by which ``new`` is better than ``old``; below zero where it is worse.

    Of P95 and Req95 the share that is saved, of a rate the share that is added, of attainment the points
    (0.05: five more of a hundred are in time).
    """
    if isnan(old) or isnan(new) or old == new:
        return 0.0
    if objective is Objective.ATTAINMENT:
        return new - old
    if objective is Objective.RATE:
        return new / old - 1 if old else inf
    if isinf(old):
        return 1.0
    return 1 - new / old


def hastened(queries: Sequence[SimulatedQuery], pace: float) -> list[SimulatedQuery]:
    """Return the same queries, arriving ``pace`` times as fast."""
    return [replace(query, arrival=query.arrival / pace) for query in queries]


def _figure(objective: Objective, results: Sequence[QueryResult]) -> float:
    if objective is Objective.P95:
        return percentile(latencies(results), SHARE)
    if objective is Objective.ATTAINMENT:
        return attainment(results)
    based = [each for each in results if each.base_seconds]
    if based:
        return required_scale(based, share=SHARE)
    # A trace of a router knows deadlines and no bases: the deadline is the measure then.
    return required_scale(
        [replace(each, base_seconds=each.slo_seconds) for each in results if each.slo_seconds], share=SHARE
    )
