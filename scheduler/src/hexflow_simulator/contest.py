"""A contest: several policies on one fleet and one traffic, seed by seed, each seed the same for all of them.

The kernel begins each run with the same estimates, those of earlier queries, as a router that has been up for a while.
Runs go out policy by policy within a seed, so that what is there when somebody stops it compares like with like.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from hexflow_scheduler import Estimates, Outcome, Policy
from hexflow_simulator.bounds import critical_path
from hexflow_simulator.chart import cumulative
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.measure import WARM_UP, Figures, figures, latencies, scales, warmed_up
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.result import CallResult, QueryResult
from hexflow_simulator.simulation import simulate
from hexflow_simulator.tally import Tally
from hexflow_simulator.traffic import FIRST_SEED, LEARNING_SEED, Traffic

LEARNING_QUERIES = 200
LEARNING_PACE = 0.5
LEARNING_POLICY = "LeastOutstanding"
_LOOKED_THROUGH = 1000
"""Queries among which one is picked to be shown."""

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A policy that takes part, with what differs from its defaults."""

    policy: str
    parameters: tuple[tuple[str, float], ...] = ()

    @property
    def label(self) -> str:
        """What it is called in tables: ``HexGenFlow(alpha=0.3)``."""
        if not self.parameters:
            return self.policy
        return f"{self.policy}({', '.join(f'{name}={value:g}' for name, value in self.parameters)})"

    def made(self) -> Policy:
        """Return the policy; raises UnknownPolicy and InvalidParameter."""
        return Policy.named(self.policy, **dict(self.parameters))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Say who competes where on what."""

    fleet: tuple[SimulatedInstance, ...]
    traffic: Traffic
    entries: tuple[Entry, ...]
    seeds: tuple[int, ...] = (FIRST_SEED,)
    paces: tuple[float, ...] = ()
    """Further paces, at which the first seed is run for the curve of latency against rate."""

    @property
    def runs(self) -> list["Run"]:
        """All runs: the first seed of every policy, then the second, and the other paces last."""
        seeds = [Run(entry=entry, seed=seed) for seed in self.seeds for entry in self.entries]
        paces = [
            Run(entry=entry, seed=self.seeds[0], pace=pace) for pace in self.paces for entry in self.entries
        ]
        return seeds + paces


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One policy on one seed at one pace."""

    entry: Entry
    seed: int
    pace: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Sum up where calls spent their time. Seconds, tokens; calls that ran side by side count each."""

    calls: int = 0
    waiting: float = 0.0
    """From their release to being sent."""
    prefill: float = 0.0
    """From being sent to the first token; the engine's own queue included."""
    decode: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    def plus(self, call: CallResult) -> "Spent":
        """Return the sum with one call more."""
        return Spent(
            calls=self.calls + 1,
            waiting=self.waiting + call.sent - call.released,
            prefill=self.prefill + call.first_token - call.sent,
            decode=self.decode + call.finished - call.first_token,
            prompt_tokens=self.prompt_tokens + call.prompt_tokens,
            cached_tokens=self.cached_tokens + call.cached_tokens,
            output_tokens=self.output_tokens + call.output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Report a run."""

    run: Run
    figures: Figures
    queries: int
    """All of them; the figures leave out the first ones."""
    calls: int
    failed_calls: int
    retries: int
    ended: float
    latencies: Points
    """Distribution over the queries: seconds, share."""
    scales: Points
    """Distribution of latency over SLO base."""
    by_instance: Mapping[str, Spent]
    by_stage: Mapping[str, Spent]
    reasons: Mapping[str, int]
    """Why queries have no answer, and how many."""
    shown: tuple[CallResult, ...]
    """Calls of the query that is shown; of the first seed at pace 1 alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What all runs of a contest have in common, beside the contest."""

    learned: Mapping[str, Any] = field(default_factory=dict)
    """Estimates with which the kernel begins."""
    shown: str = ""
    """Id of the query whose calls are kept."""


def prepare(contest: Contest) -> Course:
    """Learn what a router knows that has been up for a while, and pick the query to show."""
    estimates = Estimates()
    traffic, fleet = contest.traffic, contest.fleet
    simulate(
        islice(traffic.queries(LEARNING_SEED, pace=LEARNING_PACE), LEARNING_QUERIES),
        fleet,
        Policy.named(LEARNING_POLICY),
        estimates=estimates,
    )
    first = list(islice(traffic.queries(contest.seeds[0]), _LOOKED_THROUGH))
    return Course(learned=estimates.to_data(), shown=_demanding(first, fleet))


def run(
    contest: Contest, course: Course, each: Run, *, progress: Callable[[int], None] | None = None
) -> RunResult:
    """Run one policy on one seed; memory stays flat but for five numbers a query."""
    tally = Tally()
    reasons: Counter[str] = Counter()
    by_instance: dict[str, Spent] = {}
    by_stage: dict[str, Spent] = {}
    shown: list[CallResult] = []
    kept = course.shown if (each.seed, each.pace) == (contest.seeds[0], 1.0) else None

    def ended(query: QueryResult) -> None:
        tally.add(query)
        if query.finished is None:
            reasons[query.reason] += 1

    def call_ended(call: CallResult) -> None:
        if call.outcome == Outcome.FINISHED.value:
            by_instance[call.instance_id] = by_instance.get(call.instance_id, _NOTHING).plus(call)
            by_stage[call.stage] = by_stage.get(call.stage, _NOTHING).plus(call)
            if call.query_id == kept:
                shown.append(call)

    result = simulate(
        contest.traffic.queries(each.seed, pace=each.pace),
        contest.fleet,
        each.entry.made(),
        estimates=Estimates.from_data(course.learned),
        progress=progress,
        on_query=ended,
        on_call=call_ended,
    )
    tally.sort()
    counted = warmed_up(tally)
    return RunResult(
        run=each,
        figures=figures(tally),
        queries=len(tally),
        calls=result.call_count,
        failed_calls=result.failed_calls,
        retries=result.retries,
        ended=result.ended,
        latencies=cumulative(latencies(counted)),
        scales=cumulative(scales(counted)),
        by_instance=by_instance,
        by_stage=by_stage,
        reasons=dict(reasons),
        shown=tuple(shown),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Hold what nothing can beat: every query takes its clairvoyant critical path."""

    figures: Figures
    latencies: Points
    scales: Points


def bound(contest: Contest, seed: int, *, note: Callable[[], None] = lambda: None) -> Bound:
    """Return the bound of a seed; ``note`` is called before each query and may raise what ends it."""
    tally = Tally()
    for query in contest.traffic.queries(seed):
        note()
        seconds = critical_path(query, contest.fleet)
        tally.add(
            QueryResult(
                query_id="",
                workflow="",
                tenant="",
                arrival=query.arrival,
                finished=query.arrival + seconds,
                slo_seconds=query.slo_seconds,
                base_seconds=query.base_seconds,
                calls=0,
            )
        )
    counted = warmed_up(tally)
    return Bound(
        figures=figures(tally),
        latencies=cumulative(latencies(counted)),
        scales=cumulative(scales(counted)),
    )


_NOTHING = Spent()


def _demanding(queries: Sequence[SimulatedQuery], fleet: Sequence[SimulatedInstance]) -> str:
    """Return the id of a query that is longer than 95 of 100, of those that find a busy fleet; empty for none."""
    later = queries[int(len(queries) * WARM_UP) :]
    ordered = sorted(later, key=lambda query: critical_path(query, fleet))
    return ordered[int(0.95 * (len(ordered) - 1))].query_id if ordered else ""
