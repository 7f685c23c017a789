"""Scenarios by name: a fleet, what arrives, and the rate that is called load 1.

S1 to S18 are those of the study that the default policy comes from, with its rates; X1 to X6 are what it lacks:
two models in one fleet, an instance that dies, a day's swing, bursts, prompts that share nothing, 64 instances.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from hexflow_simulator.arrivals import Arrivals, Bursts, Diurnal, Gamma, Poisson
from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.fleet import FleetChange, FleetEvent, SimulatedInstance
from hexflow_simulator.gpus import FLEETS, MODELS, Gpus, instances
from hexflow_simulator.mix import mix_named
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.slo import warm_base
from hexflow_simulator.workload import ONE_TENANT, THREE_CLASSES, Tenant, Workload, merged

POISSON = Poisson(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Describe the queries of one model, and the part of the fleet that serves them."""

    gpus: Gpus
    size: str
    mix: str
    databases: int | None = None
    share: float = 1.0
    """Part of the scenario's rate."""
    tenants: tuple[Tenant, ...] = ONE_TENANT
    slots: int | None = None
    prefixes: bool = True
    name: str = ""
    """Tells the streams of one scenario apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """Say what happens to an instance, and when."""

    share: float
    """Of the time in which the queries arrive."""
    place: int
    """The instance's place in the fleet."""
    kind: FleetChange
    factor: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Describe a cell of the benchmark without its load, seed and policy."""

    name: str
    title: str
    streams: tuple[Stream, ...]
    rate: float
    """Queries a second at load 1: the best of five baselines just has 95 % within three SLO bases."""
    arrivals: Arrivals = POISSON
    mishaps: tuple[Mishap, ...] = ()
    count: int = 500
    """Queries of a run."""

    @cached_property
    def fleet(self) -> tuple[SimulatedInstance, ...]:
        """The instances of all streams."""
        return tuple(
            instance
            for stream in self.streams
            for instance in instances(stream.gpus, stream.size, slots=stream.slots, prefix=stream.name)
        )

    @cached_property
    def bases(self) -> tuple[float, ...]:
        """SLO base of each stream, in seconds."""
        return tuple(
            warm_base(
                mix_named(stream.mix),
                [each.true_profile for each in instances(stream.gpus, stream.size)],
            )
            for stream in self.streams
        )

    def workloads(self, load: float) -> tuple[Workload, ...]:
        """Return what arrives at a load, one workload for each stream."""
        return tuple(
            Workload(
                mix=mix_named(stream.mix),
                arrivals=self.arrivals.at_rate(self.rate * load * stream.share),
                model=MODELS[stream.size].name,
                databases=stream.databases,
                tenants=stream.tenants,
                base_seconds=base,
                name=f"{stream.name}{stream.mix}",
                prefixes=stream.prefixes,
            )
            for stream, base in zip(self.streams, self.bases, strict=True)
        )

    def queries(self, seed: int, *, load: float, count: int | None = None) -> Iterator[SimulatedQuery]:
        """Yield the queries of a seed; of several streams each has its part of ``count`` (default ``self.count``)."""
        whole = self.count if count is None else count
        return merged(
            *(
                workload.queries(seed, count=round(whole * stream.share))
                for workload, stream in zip(self.workloads(load), self.streams, strict=True)
            )
        )

    def events(self, *, load: float, count: int | None = None) -> tuple[FleetEvent, ...]:
        """Return what happens to the fleet in a run of ``count`` queries at a load."""
        seconds = (self.count if count is None else count) / (self.rate * load)
        return tuple(
            FleetEvent(
                at=mishap.share * seconds,
                instance_id=self.fleet[mishap.place].instance.instance_id,
                kind=mishap.kind,
                factor=mishap.factor,
            )
            for mishap in self.mishaps
        )


def _study(
    name: str,
    fleet: str,
    size: str,
    mix: str,
    databases: int,
    rate_at_0_8: float,
    *,
    note: str = "",
    tenants: tuple[Tenant, ...] = ONE_TENANT,
    slots: int | None = None,
    arrivals: Arrivals = POISSON,
) -> Scenario:
    words = (f"{fleet} {size} {mix}, {databases} database{'s' if databases > 1 else ''}", note)
    return Scenario(
        name=name,
        title=", ".join(word for word in words if word),
        streams=(
            Stream(
                gpus=FLEETS[fleet],
                size=size,
                mix=mix,
                databases=databases,
                tenants=tenants,
                slots=slots,
            ),
        ),
        rate=round(rate_at_0_8 / 0.8, 4),
        arrivals=arrivals,
        count=2000 if fleet == "mix16" else 500,
    )


def _ours(
    name: str,
    title: str,
    *streams: Stream,
    rate: float,
    arrivals: Arrivals = POISSON,
    mishaps: tuple[Mishap, ...] = (),
    count: int = 500,
) -> Scenario:
    return Scenario(
        name=name,
        title=title,
        streams=streams,
        rate=rate,
        arrivals=arrivals,
        mishaps=mishaps,
        count=count,
    )


_ALL = (
    _study("S1", "het1", "70B", "natural", 1, 0.66),
    _study("S2", "het1", "70B", "natural", 10, 0.69),
    _study("S3", "het1", "70B", "natural", 100, 0.48),
    _study("S4", "het2", "70B", "natural", 100, 0.49),
    _study("S5", "het2", "70B", "stratified", 10, 0.48),
    _study("S6", "het3", "70B", "natural", 100, 0.94),
    _study("S7", "homo", "70B", "natural", 100, 0.59),
    _study("S8", "homo", "70B", "stratified", 10, 0.60),
    _study("S9", "mix16", "70B", "natural", 100, 2.77),
    _study("S10", "het1", "32B", "modern", 10, 0.14),
    _study("S11", "het3", "32B", "natural", 10, 0.92),
    _study("S12", "het1", "7B", "modern", 100, 0.23),
    _study("S13", "het3", "7B", "short", 100, 6.36),
    _study("S14", "het1", "70B", "natural", 100, 0.37, note="gaps of CV 3", arrivals=Gamma(1.0, 3.0)),
    _study("S15", "het3", "32B", "modern", 100, 0.10, note="three SLO classes", tenants=THREE_CLASSES),
    _study("S16", "het1", "70B", "natural", 10, 0.49, note="16 slots", slots=16),
    _study("S17", "het2", "70B", "natural", 10, 0.40, note="three SLO classes", tenants=THREE_CLASSES),
    _study("S18", "homo", "7B", "modern", 10, 0.44),
    _ours(
        "X1",
        "two models in one fleet: 32B on H100, A100 x 2, L40S; 7B on A6000 x 2, L40S",
        Stream(
            gpus=(("H100-SXM", 1), ("A100-80GB", 2), ("L40S", 1)),
            size="32B",
            mix="natural",
            databases=10,
            share=0.3,
            name="large-",
        ),
        Stream(
            gpus=(("A6000", 2), ("L40S", 1)),
            size="7B",
            mix="short",
            databases=10,
            share=0.7,
            name="small-",
        ),
        rate=3.55,
    ),
    _ours(
        "X2",
        "het1 70B natural, 10 databases; an A100 dies after 40 % of the time and returns after 60 %",
        Stream(gpus=FLEETS["het1"], size="70B", mix="natural", databases=10),
        rate=0.61,
        mishaps=(
            Mishap(share=0.4, place=0, kind=FleetChange.DIES),
            Mishap(share=0.6, place=0, kind=FleetChange.RETURNS),
        ),
    ),
    _ours(
        "X3",
        "het3 70B natural, 100 databases; the rate swings by 60 % in 10 minutes",
        Stream(gpus=FLEETS["het3"], size="70B", mix="natural", databases=100),
        rate=0.93,
        arrivals=Diurnal(1.0, swing=0.6, period=600.0),
        count=1000,
    ),
    _ours(
        "X4",
        "het2 32B natural, 10 databases; 10 times the rate for 30 s every 10 minutes",
        Stream(gpus=FLEETS["het2"], size="32B", mix="natural", databases=10),
        rate=0.24,
        arrivals=Bursts(1.0, factor=10.0, seconds=30.0, every=600.0),
    ),
    _ours(
        "X5",
        "het1 32B natural; no two prompts begin alike",
        Stream(gpus=FLEETS["het1"], size="32B", mix="natural", prefixes=False),
        rate=0.135,
    ),
    _ours(
        "X6",
        "64 instances: H100 x 8, A100 x 24, A6000 x 20, L40S x 12; 70B natural, 100 databases",
        Stream(gpus=FLEETS["fleet64"], size="70B", mix="natural", databases=100),
        rate=13.5,
        count=4000,
    ),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in _ALL})
"""Scenarios by name."""


def scenario_named(name: str) -> Scenario:
    """Return a scenario by name; raises InvalidWorkload with the names there are."""
    if name not in SCENARIOS:
        raise InvalidWorkload(f"no scenario is called {name!r}; there are: {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
