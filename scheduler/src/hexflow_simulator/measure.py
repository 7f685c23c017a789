"""Figures of a simulation: percentiles, attainment, the SLO scale that is required, and how two compare.

A query without an answer counts as infinitely late everywhere. Percentiles are of the nearest rank, so
that a percentile is always a latency that was seen, and Req95 is the smallest scale with 95 % in time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, inf, nan
from statistics import fmean, median

from hexflow_simulator.result import QueryResult

WARM_UP = 0.1
"""Share of the queries, the first to arrive, that is left out: the fleet is not yet as busy as it will be."""


def warmed_up(queries: Sequence[QueryResult], *, share: float = WARM_UP) -> Sequence[QueryResult]:
    """Return the queries, which are in order of arrival, without the first ones."""
    return queries[int(len(queries) * share) :]


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that ``share`` of the values do not pass; NaN where there are none."""
    ordered = sorted(values)
    if not ordered:
        return nan
    # The product of a share and a count may lie a hair above a whole number.
    return ordered[max(0, ceil(share * len(ordered) - 1e-9) - 1)]


def latencies(queries: Iterable[QueryResult]) -> list[float]:
    """Return the seconds of each query, infinite where it has no answer."""
    return [inf if query.latency is None else query.latency for query in queries]


def scales(queries: Iterable[QueryResult]) -> list[float]:
    """Return latency over SLO base of each query that has a base, infinite where it has no answer."""
    return [
        inf if query.latency is None else query.latency / query.base_seconds
        for query in queries
        if query.base_seconds
    ]


def attainment(queries: Iterable[QueryResult], *, scale: float | None = None) -> float:
    """Return the share of queries in time: within their SLO, or within ``scale`` times their SLO base.

    Queries that have no such limit are left out; NaN where none has.
    """
    met = [
        query.latency is not None and query.latency <= limit
        for query in queries
        if (limit := query.slo_seconds if scale is None else _limit(query, scale)) is not None
    ]
    return sum(met) / len(met) if met else nan


def required_scale(queries: Iterable[QueryResult], *, share: float = 0.95) -> float:
    """Return the smallest SLO scale with ``share`` of the queries in time: Req95, Req99."""
    return percentile(scales(queries), share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Hold what is reported of one run. Seconds, shares, multiples of the SLO base."""

    queries: int
    answered: float
    """Share of the queries that have an answer."""
    mean: float
    p50: float
    p95: float
    p99: float
    attainment: float
    """Share within their own SLO."""
    req95: float
    req99: float


def figures(queries: Sequence[QueryResult], *, warm_up: float = WARM_UP) -> Figures:
    """Return the figures of a run, its first queries left out."""
    counted = warmed_up(queries, share=warm_up)
    seconds = latencies(counted)
    return Figures(
        queries=len(counted),
        answered=sum(query.finished is not None for query in counted) / len(counted) if counted else nan,
        mean=fmean(seconds) if seconds else nan,
        p50=percentile(seconds, 0.5),
        p95=percentile(seconds, 0.95),
        p99=percentile(seconds, 0.99),
        attainment=attainment(counted),
        req95=required_scale(counted, share=0.95),
        req99=required_scale(counted, share=0.99),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Hold the median of several runs and their range."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.low:.3g}-{self.high:.3g})"


def spread(values: Sequence[float]) -> Spread:
    """Return median and range; raises ValueError where there are no values."""
    if not values:
        raise ValueError("there is nothing to take a median of")
    return Spread(median=median(values), low=min(values), high=max(values))


def paired_ratios(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return each value over the other of the same seed; 1 where both are infinite.

    Pairing takes out what the arrivals of a seed have done to both.
    """
    return [
        1.0 if value == other else value / other if other else inf
        for value, other in zip(values, others, strict=True)
    ]


def _limit(query: QueryResult, scale: float) -> float | None:
    return None if query.base_seconds is None else scale * query.base_seconds
