"""Robustness: what a policy loses when lengths, speeds, rates or neighbours are not what they should be.

Each function runs one disturbance beside the same run without it, on the same queries. ``tests/bench/robust.py``
prints what they find; small ones are held to their signs in ``tests/integration/test_robust.py``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import median

from hexflow_scheduler import Estimates, Policy
from hexflow_simulator.arrivals import Bursts, Poisson
from hexflow_simulator.fleet import FleetChange, FleetEvent, SimulatedInstance
from hexflow_simulator.gpus import MODELS
from hexflow_simulator.knowledge import Knowledge
from hexflow_simulator.measure import attainment, figures, warmed_up
from hexflow_simulator.mix import mix_named
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.result import CallResult, QueryResult
from hexflow_simulator.scenario import Scenario
from hexflow_simulator.simulation import simulate
from hexflow_simulator.trial import learned
from hexflow_simulator.workload import Tenant, Workload, merged

BURST_FACTOR, BURST_SECONDS = 10.0, 30.0
CALM_SECONDS = 600.0
"""Before the burst, and as long as recovery from it is looked for."""
RECOVERED = 1.2
"""Times the median latency before the burst that is as good as that."""
IN_A_ROW = 10
"""Queries whose median says whether it is."""
STEADY, FLOODING = "steady", "flooding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Name a scenario at a load, and the size of a run."""

    scenario: Scenario
    load: float
    count: int

    def queries(self, seed: int) -> Iterator[SimulatedQuery]:
        """Yield the queries of a seed."""
        return self.scenario.queries(seed, load=self.load, count=self.count)

    def estimates(self) -> Estimates:
        """Return what a kernel has learned that has been up for a while."""
        return Estimates.from_data(learned(self.scenario.name))


def lost_by_lengths(spot: Spot, policy: Policy, seed: int, *, error: float) -> float:
    """Return P95 where expected lengths have a lognormal error, over P95 where they have none of it."""
    right, wrong = (_p95(spot, policy, seed, error=each) for each in (0.0, error))
    return wrong / right


def lost_by_speed(spot: Spot, policy: Policy, seed: int, *, place: int, factor: float) -> float:
    """Return P95 where one instance is believed ``factor`` times as fast as it is, over P95 where none is.

    Nothing was learned of its speed before: the online scale begins at 1.
    """
    fleet = list(spot.scenario.fleet)
    source = fleet[place]
    told = _times(source, 1 / factor)
    fleet[place] = told
    return _p95(spot, policy, seed, fleet=fleet) / _p95(spot, policy, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Say what was learned of the speed of an instance that changed it."""

    truth: float
    prefill: float
    decode: float

    @property
    def error(self) -> float:
        """The larger of the relative errors of the two scales."""
        return max(abs(scale / self.truth - 1) for scale in (self.prefill, self.decode))


def learned_scale(
    spot: Spot, policy: Policy, seed: int, *, place: int, factor: float, dies: bool, calls: int = 20
) -> Scales:
    """Return the scales of an instance that became slower, unannounced, half-way through, ``calls`` calls sent since later.

    Where it ``dies`` it comes back after a minute, slower from the start. Raises ValueError where it had fewer.
    """
    name = spot.scenario.fleet[place].instance.instance_id
    at = spot.count / (spot.scenario.rate * spot.load) / 2
    back = at + 60.0 if dies else at
    slows = FleetEvent(at=back, instance_id=name, kind=FleetChange.SLOWS, factor=factor)
    events = [slows]
    if dies:
        name += "~2"
        events = [
            FleetEvent(at=at, instance_id=slows.instance_id, kind=FleetChange.DIES),
            FleetEvent(at=back, instance_id=slows.instance_id, kind=FleetChange.RETURNS),
            slows,
        ]
    estimates, found = spot.estimates(), []

    def look(call: CallResult) -> None:
        if call.instance_id == name and call.sent >= back and call.outcome == "Finished":
            found.append(estimates.scales(name))

    simulate(
        spot.queries(seed),
        spot.scenario.fleet,
        policy,
        estimates=estimates,
        events=events,
        on_call=look,
    )
    if len(found) < calls:
        raise ValueError(f"{name} ended {len(found)} calls after it changed; {calls} are needed")
    prefill, decode = found[calls - 1]
    return Scales(truth=factor, prefill=prefill, decode=decode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Report a run with a burst in it."""

    usual: float
    """Median latency of the queries that arrived before the burst."""
    after: tuple[tuple[float, float], ...]
    """Seconds after the end of the burst at which each query arrived, and its latency."""

    def back(self, level: float) -> float:
        """Return the seconds until queries that arrive take no more than ``level``.

        That is the arrival of the first of ``IN_A_ROW`` whose median latency is no more. ``CALM_SECONDS`` where
        none is. A policy's own ``usual`` is no common level: one that is always slow is back at once.
        """
        latencies = [latency for _, latency in self.after]
        for first in range(len(latencies) - IN_A_ROW + 1):
            if median(latencies[first : first + IN_A_ROW]) <= level:
                return self.after[first][0]
        return CALM_SECONDS


def burst(spot: Spot, policy: Policy, seed: int) -> Burst:
    """Let ten times as many queries arrive for half a minute, with ten minutes of the spot's load on either side."""
    end = CALM_SECONDS + BURST_SECONDS
    bursts = Bursts(1.0, factor=BURST_FACTOR, seconds=BURST_SECONDS, every=end)
    scenario = replace(spot.scenario, arrivals=bursts)
    arriving = takewhile(
        lambda query: query.arrival < end + CALM_SECONDS,
        scenario.queries(seed, load=spot.load, count=100_000),
    )
    queries = simulate(arriving, scenario.fleet, policy, estimates=spot.estimates()).queries
    before = warmed_up([query for query in queries if query.arrival < CALM_SECONDS])
    return Burst(
        usual=median(_latency(query) for query in before),
        after=tuple((query.arrival - end, _latency(query)) for query in queries if query.arrival >= end),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """Say how a tenant fares beside one that keeps to its share, and beside the same one in flood."""

    calm: float
    """Share of the tenant's queries in time."""
    flooded: float
    calm_other: float
    """The same of the other tenant."""
    flooded_other: float

    @property
    def lost(self) -> float:
        """Points of attainment that the tenant loses to the flood."""
        return 100 * (self.calm - self.flooded)


def flood(spot: Spot, policy: Policy, seed: int, *, factor: float) -> Flood:
    """Let two tenants ask at half of the spot's load each, and one of them at ``factor`` times that."""
    calm, high = (_two_tenants(spot, policy, seed, times) for times in (1.0, factor))
    return Flood(
        calm=calm[STEADY], flooded=high[STEADY], calm_other=calm[FLOODING], flooded_other=high[FLOODING]
    )


def _two_tenants(spot: Spot, policy: Policy, seed: int, factor: float) -> dict[str, float]:
    scenario = spot.scenario
    (stream,), (base,) = scenario.streams, scenario.bases
    rate = scenario.rate * spot.load / 2
    seconds = spot.count / (2 * rate)
    streams = [
        Workload(
            mix=mix_named(stream.mix),
            arrivals=Poisson(rate * times),
            model=MODELS[stream.size].name,
            databases=stream.databases,
            tenants=(Tenant(name=name),),
            base_seconds=base,
            name=f"{name}-{stream.mix}",
        ).queries(seed, seconds=seconds)
        for name, times in ((STEADY, 1.0), (FLOODING, factor))
    ]
    result = simulate(merged(*streams), scenario.fleet, policy, estimates=spot.estimates())
    counted = warmed_up(result.queries)
    return {name: attainment(each for each in counted if each.tenant == name) for name in (STEADY, FLOODING)}


def _p95(
    spot: Spot,
    policy: Policy,
    seed: int,
    *,
    fleet: Sequence[SimulatedInstance] | None = None,
    error: float = 0.0,
) -> float:
    result = simulate(
        spot.queries(seed),
        spot.scenario.fleet if fleet is None else fleet,
        policy,
        estimates=spot.estimates(),
        events=spot.scenario.events(load=spot.load, count=spot.count),
        knowledge=Knowledge(error=error, seed=seed) if error else None,
    )
    return figures(result.queries).p95


def _times(source: SimulatedInstance, factor: float) -> SimulatedInstance:
    """Return an instance of which the kernel believes that everything takes ``factor`` times as long as it does."""
    true = source.true_profile
    told = true.slowed(prefill=factor, decode=factor)
    return replace(source, instance=replace(source.instance, profile=told), profile=true)


def _latency(query: QueryResult) -> float:
    return float("inf") if query.latency is None else query.latency
