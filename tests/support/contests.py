"""Contests that are small enough for a unit test, and results of contests that nobody ran."""

from typing import Any

from hexflow_simulator.contest import Contest, Course, Entry, Run, RunResult, Spent, prepare, run
from hexflow_simulator.importing import Listed
from hexflow_simulator.measure import Figures
from hexflow_simulator.traffic import Recorded
from support.simulated import instances, random_queries

OURS, PLAIN = Entry(policy="LeastHarm"), Entry(policy="RoundRobin")


def a_contest(count: int = 40, **changes: Any) -> Contest:
    """Return a contest of two policies on two instances."""
    traffic = Recorded(
        trace=Listed(iter(random_queries(count, rate=0.5))), name="some.jsonl", count=count, base_seconds=4.0
    )
    usual: dict[str, Any] = {"fleet": tuple(instances(2)), "traffic": traffic, "entries": (OURS, PLAIN)}
    return Contest(**{**usual, **changes})


def all_results(contest: Contest) -> list[RunResult]:
    """Run a contest here."""
    course: Course = prepare(contest)
    return [run(contest, course, each) for each in contest.runs]


def a_result(
    entry: Entry = OURS, seed: int = 1, *, p95: float = 10.0, pace: float = 1.0, **changes: Any
) -> RunResult:
    """Return a result with figures of one's own; attainment is 0.9 unless said."""
    figures: dict[str, Any] = {
        "queries": 90,
        "answered": 1.0,
        "mean": p95 / 3,
        "p50": p95 / 2,
        "p95": p95,
        "p99": p95 * 2,
        "attainment": 0.9,
        "req95": p95 / 4,
        "req99": p95 / 2,
    }
    figures |= {name: changes.pop(name) for name in tuple(changes) if name in figures}
    usual: dict[str, Any] = {
        "run": Run(entry=entry, seed=seed, pace=pace),
        "figures": Figures(**figures),
        "queries": 100,
        "calls": 400,
        "failed_calls": 0,
        "retries": 0,
        "ended": 500.0,
        "latencies": ((1.0, 0.5), (p95, 1.0)),
        "scales": ((0.5, 0.5), (p95 / 4, 1.0)),
        "by_instance": {
            "i0": Spent(
                calls=400,
                waiting=40.0,
                prefill=80.0,
                decode=800.0,
                prompt_tokens=4000,
                cached_tokens=1000,
                output_tokens=900,
            )
        },
        "by_stage": {
            "draft": Spent(
                calls=400,
                waiting=40.0,
                prefill=80.0,
                decode=800.0,
                prompt_tokens=4000,
                cached_tokens=1000,
                output_tokens=900,
            )
        },
        "reasons": {},
        "shown": (),
    }
    return RunResult(**{**usual, **changes})
