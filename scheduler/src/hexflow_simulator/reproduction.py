"""The reproduction of HexGen-Flow's figures: its authors' settings, and one run of a policy under them.

Fleets, rates, sizes and SLO bases are theirs, and so is the engine model (``authors``). Their traces are not
here; queries are drawn from the shapes fitted to the traces' aggregates (``chess``). What is believed of a
call's seconds is either their table (``stagecosts``) or what our kernel learns. A run is one finite trace as
they ran it: all of its queries count, the first and the last ones too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from time import process_time
from types import MappingProxyType
from typing import Any, Final

from hexflow_scheduler import Estimates, Policy
from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.authors import BLOCK_TOKENS, SPEEDS, authors_engine, authors_fleet
from hexflow_simulator.capacity import sustainable_rate
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.measure import figures
from hexflow_simulator.mix import mix_named
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.simulation import simulate
from hexflow_simulator.stagecosts import StageCosts
from hexflow_simulator.trial import Trial, TrialResult
from hexflow_simulator.workload import Workload

MODEL: Final = "llama-3.1-70b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Name four instances as the authors had them, and the SLO base they reckon for these."""

    gpus: tuple[str, ...]
    base_seconds: float
    """Sum over their template of fifteen steps of the mean over the instances."""


FLEETS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "Hetero-2": Setting(gpus=("A100", "A100", "A6000", "L40S"), base_seconds=59.2),
        "Hetero-1": Setting(gpus=("A100", "A6000", "A100", "A6000"), base_seconds=60.3),
        "Homo": Setting(gpus=("A100",) * 4, base_seconds=47.9),
    }
)
"""By the paper's name; the order is that of the round robin."""
MAIN: Final = "Hetero-2"
"""The fleet that is looked at most closely."""
TRACES: Final[Mapping[str, int]] = MappingProxyType({"trace1": 90, "trace2": 96, "trace3": 110})
"""Queries of each trace."""
RATES: Final = (0.25, 0.5, 1.0)
"""Queries a second: their scripts have the last two, the first shows differences best."""
SLO_FACTOR: Final = 5.0
"""What a query is given, in SLO bases."""

SEEDS: Final = (1, 2, 3, 4, 5)
TUNING_SEEDS: Final = (101, 102)
SCALE: Final = 5.0
"""The SLO scale at which sustainable rates are looked for."""

THEIRS: Final = "their table"
LEARNED: Final = "learned"

LEARNING_QUERIES = 200
LEARNING_RATE = 0.125
LEARNING_POLICY = "LeastOutstanding"
LEARNING_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Name a policy that is compared, what it believes, and what is tried of its parameters."""

    title: str
    policy: str
    belief: str = THEIRS
    grid: tuple[Mapping[str, float], ...] = ({},)
    tuned_as: str = ""
    """Title of the row whose tuning it takes over; empty for its own."""


_ALPHAS = tuple({"alpha": alpha} for alpha in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9))
_BETAS = tuple({"beta": beta} for beta in (1.0, 10.0, 100.0, 1000.0))
BASELINE: Final = "RR+FCFS"
PAPER: Final = "HexGen-Flow (WB+PQ)"
OURS: Final = "LeastHarm"
ROWS: Final[Mapping[str, Row]] = MappingProxyType(
    {
        row.title: row
        for row in (
            Row(title=BASELINE, policy="RoundRobin"),
            Row(title="RR+PQ", policy="RoundRobin+LatestStart"),
            Row(title="WB+FCFS", policy="HexGenFlowLiteral+FCFS", grid=_ALPHAS, tuned_as=PAPER),
            Row(title=PAPER, policy="HexGenFlowLiteral+LatestStart", grid=_ALPHAS),
            Row(
                title="with the proportional split", policy="HexGenFlowLiteral", grid=_ALPHAS, tuned_as=PAPER
            ),
            Row(title="without units", policy="HexGenFlow+LatestStart", grid=_BETAS),
            Row(title="EarliestFinish", policy="EarliestFinish+Deadline", belief=LEARNED),
            Row(title=OURS, policy="LeastHarm", belief=LEARNED),
        )
    }
)
"""What is compared. With ``LatestStart`` and their table (``rest_seconds`` is 0) the slack is the end-to-end one."""
SUSTAINED: Final = (BASELINE, PAPER, OURS)
"""Rows of which sustainable rates are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Name a fleet, a trace and what the kernel believes."""

    fleet: str
    trace: str
    belief: str = THEIRS

    @property
    def name(self) -> str:
        """The name of its trials' scenario."""
        return f"{self.fleet}/{self.trace}/{self.belief}"

    @classmethod
    def named(cls, name: str) -> "Scene":
        """Return the scene of a trial; raises KeyError for one that there is not."""
        fleet, trace, belief = name.split("/")
        if fleet not in FLEETS or trace not in TRACES or belief not in (THEIRS, LEARNED):
            raise KeyError(name)
        return cls(fleet=fleet, trace=trace, belief=belief)

    @property
    def instances(self) -> list[SimulatedInstance]:
        """The fleet; the kernel knows how much KV there is, and holds what the engine could not begin with."""
        return [
            replace(
                each,
                instance=replace(
                    each.instance,
                    profile=replace(
                        each.instance.profile,
                        kv_tokens=SPEEDS[each.instance.gpu_type].kv_blocks * BLOCK_TOKENS,
                    ),
                ),
            )
            for each in authors_fleet([*FLEETS[self.fleet].gpus], MODEL)
        ]

    def queries(self, seed: int, *, rate: float, count: int | None = None) -> Iterator[SimulatedQuery]:
        """Yield the queries of a seed: the same ones at every rate, fleet and belief."""
        workload = Workload(
            mix=mix_named(self.trace),
            arrivals=Poisson(rate),
            model=MODEL,
            base_seconds=FLEETS[self.fleet].base_seconds,
            slo_factor=SLO_FACTOR,
        )
        return workload.queries(seed, count=count or TRACES[self.trace])

    def estimates(self) -> Estimates:
        """Return what a run begins with."""
        if self.belief == LEARNED:
            return Estimates.from_data(_learned(self.fleet, self.trace))
        return StageCosts({each.instance.instance_id: each.instance.gpu_type for each in self.instances})


Find = Callable[[Trial], TrialResult]
"""Returns the result of a trial: runs it, or has it from before."""


def run_scene(trial: Trial) -> TrialResult:
    """Run a trial whose scenario is a scene and whose load is a rate."""
    scene = Scene.named(trial.scenario)
    return run(trial, scene, scene.queries(trial.seed, rate=trial.load, count=trial.count))


def run(trial: Trial, scene: Scene, queries: Iterable[SimulatedQuery]) -> TrialResult:
    """Run a trial's policy on queries that need not be those of its scene."""
    estimates = scene.estimates()
    began = process_time()
    result = simulate(
        queries,
        scene.instances,
        Policy.named(trial.policy, **dict(trial.parameters)),
        estimates=estimates,
        engine=authors_engine,
    )
    return TrialResult(
        trial=trial,
        figures=figures(result.queries, warm_up=0.0),
        calls=result.call_count,
        cpu_seconds=process_time() - began,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Name a fleet, a trace and a rate."""

    fleet: str
    trace: str
    rate: float

    def trial(
        self, row: Row, seed: int, settings: Mapping[str, float], *, rate: float | None = None
    ) -> Trial:
        """Return a row's trial here, or at another rate."""
        return Trial(
            scenario=Scene(fleet=self.fleet, trace=self.trace, belief=row.belief).name,
            load=self.rate if rate is None else rate,
            policy=row.policy,
            seed=seed,
            parameters=tuple(sorted(settings.items())),
        )

    def results(self, find: Find) -> None:
        """Ask for every result that is reported of here."""
        for row in ROWS.values():
            self.measured(row, find)
        if (self.fleet, self.rate) == (MAIN, RATES[0]):
            for title in SUSTAINED:
                self.sustainable(ROWS[title], find)

    def tuned(self, row: Row, find: Find, seeds: Sequence[int] = TUNING_SEEDS) -> Mapping[str, float]:
        """Return the settings of a row with the least median P95, as the paper's tuner replays a grid; of equals the first."""
        if row.tuned_as:
            return self.tuned(ROWS[row.tuned_as], find, seeds)
        if len(row.grid) == 1:
            return row.grid[0]
        return min(
            row.grid,
            key=lambda settings: median(find(self.trial(row, seed, settings)).figures.p95 for seed in seeds),
        )

    def measured(self, row: Row, find: Find, seeds: Sequence[int] = SEEDS) -> list[TrialResult]:
        """Return a row's results here, tuned, by seed."""
        settings = self.tuned(row, find)
        return [find(self.trial(row, seed, settings)) for seed in seeds]

    def sustainable(
        self, row: Row, find: Find, *, seeds: Sequence[int] = SEEDS, scale: float = SCALE
    ) -> list[float]:
        """Return of each seed the highest rate with a Req95 within ``scale``, tuned as at this rate; 0 where none is."""
        settings = self.tuned(row, find)

        def of(seed: int) -> float:
            def holds(rate: float) -> bool:
                return find(self.trial(row, seed, settings, rate=rate)).figures.req95 <= scale

            return sustainable_rate(holds, guess=self.rate, tolerance=0.03) or 0.0

        return [of(seed) for seed in seeds]


SPOTS: Final = tuple(
    Spot(fleet=fleet, trace=trace, rate=rate) for fleet in FLEETS for rate in RATES for trace in TRACES
)
"""Everywhere that is looked, what matters most first."""


def results_at(spot: Spot, known: Mapping[str, TrialResult]) -> list[TrialResult]:
    """Run what is not known yet of a spot, by the key of its trial, and return that."""
    found: dict[str, TrialResult] = {}

    def find(trial: Trial) -> TrialResult:
        result = known.get(trial.key) or found.get(trial.key)
        if result is None:
            result = found[trial.key] = run_scene(trial)
        return result

    spot.results(find)
    return [*found.values()]


@cache
def _learned(fleet: str, trace: str) -> dict[str, Any]:
    scene = Scene(fleet=fleet, trace=trace)
    estimates = Estimates()
    simulate(
        scene.queries(LEARNING_SEED, rate=LEARNING_RATE, count=LEARNING_QUERIES),
        scene.instances,
        Policy.named(LEARNING_POLICY),
        estimates=estimates,
        engine=authors_engine,
    )
    return estimates.to_data()
