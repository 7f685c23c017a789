"""Traffic: what arrives, seed by seed and at any pace, the same for every policy.

Generated traffic has other queries under each seed. Recorded traffic has one truth, which is the first seed; the others are
drawn from it block by block (``resample``), so that a result can be told from an accident.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, isfinite
from statistics import fmean
from typing import Protocol

from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.importing import Trace
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.resample import resampled
from hexflow_simulator.slo import critical_path
from hexflow_simulator.workload import SLO_FACTOR, Workload

FIRST_SEED = 1
"""Of recorded traffic, the recording itself."""
LEARNING_SEED = 0
"""Whose queries a router has seen before the others come; of recorded traffic, the recording's first ones."""
MOST_RESAMPLED = 100_000
"""Queries of a recording that is held in memory to be drawn from."""
_SAMPLE = 1000


class Traffic(Protocol):
    """Yield what arrives."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def count(self) -> int:
        """How many queries a seed has, about."""
        ...

    @property
    def rate(self) -> float:
        """How many arrive in a second, on average, at pace 1."""
        ...

    def queries(self, seed: int, *, pace: float = 1.0) -> Iterable[SimulatedQuery]:
        """Return the queries of a seed, in order, arriving ``pace`` times as fast."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Queries of a workload."""

    workload: Workload
    rate: float
    count: int

    @property
    def name(self) -> str:
        """The mix's name."""
        return f"mix {self.workload.mix.name}"

    def queries(self, seed: int, *, pace: float = 1.0) -> Iterator[SimulatedQuery]:
        """Return the queries of a seed, in order, arriving ``pace`` times as fast."""
        return hastened(self.workload.queries(seed, count=self.count), pace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Queries of a trace, with what the trace does not say filled in."""

    trace: Trace
    name: str
    count: int
    """Of the trace's queries, the first ones, that are played."""
    pace: float = 1.0
    """How many times as fast as they were recorded they arrive at pace 1."""
    model: str | None = None
    """Serves them all, whatever the trace says; None for what it says."""
    slo_seconds: float | None = None
    """Deadline of queries that state none; None for ``SLO_FACTOR`` times their base."""
    base_seconds: float | None = None
    """SLO base of queries that have none."""

    @property
    def rate(self) -> float:
        """How many arrive in a second, on average, at pace 1."""
        seconds = self.trace.seconds / self.pace
        return self.trace.count / seconds if seconds and own_rate(self.trace) else 0.0

    def queries(self, seed: int, *, pace: float = 1.0) -> Iterable[SimulatedQuery]:
        """Return the queries of a seed, in order, arriving ``pace`` times as fast."""
        recorded = islice(map(self._completed, self.trace), self.count)
        if seed in (FIRST_SEED, LEARNING_SEED):
            return hastened(recorded, pace * self.pace)
        if self.count > MOST_RESAMPLED:
            raise InvalidWorkload(
                f"a trace of {self.count} queries is too large to draw others from; take one seed, or fewer queries"
            )
        return hastened(resampled(list(recorded), seed), pace * self.pace)

    def _completed(self, query: SimulatedQuery) -> SimulatedQuery:
        base = self.base_seconds if query.base_seconds is None else query.base_seconds
        slo = query.slo_seconds
        if slo is None:
            slo = self.slo_seconds or (base and SLO_FACTOR * base)
        if self.model is None:
            return replace(query, base_seconds=base, slo_seconds=slo)
        return replace(query, base_seconds=base, slo_seconds=slo, model=self.model, pools=None)


def own_rate(trace: Trace) -> float | None:
    """Return how many queries of a trace arrive in a second, on average; None where they come as good as at once."""
    rate = trace.count / trace.seconds if trace.seconds else inf
    return rate if isfinite(rate) else None


def hastened(queries: Iterable[SimulatedQuery], pace: float) -> Iterator[SimulatedQuery]:
    """Yield the same queries, arriving ``pace`` times as fast."""
    if pace == 1.0:
        return iter(queries)
    return (replace(query, arrival=query.arrival / pace) for query in queries)


def recorded_base(queries: Iterable[SimulatedQuery], fleet: Sequence[SimulatedInstance]) -> float | None:
    """Return the mean warm critical path over the first queries and the instances; None where there are none.

    What a mix's SLO base is, reckoned from the queries themselves.
    """
    profiles = [each.true_profile for each in fleet]
    kinds = {profile: profiles.count(profile) for profile in profiles}
    means = [
        sum(number * critical_path(query.stages, profile) for profile, number in kinds.items())
        / len(profiles)
        for query in islice(queries, _SAMPLE)
    ]
    return fmean(means) if means else None


def unserved(queries: Iterable[SimulatedQuery], fleet: Sequence[SimulatedInstance]) -> SimulatedQuery | None:
    """Return the first of the first thousand queries whose model and pools no instance has; None where there is none."""
    served = {(model, each.instance.pool) for each in fleet for model in each.instance.models}
    models = {model for model, _ in served}
    for query in islice(queries, _SAMPLE):
        if query.model not in models:
            return query
        if query.pools is not None and not any((query.model, pool) in served for pool in query.pools):
            return query
    return None
