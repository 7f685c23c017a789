"""What a contest came to, for programs: plain data (JSON) in seconds, shares and tokens; what is infinite or unknown is None."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import inf
from typing import Any

from hexflow_simulator.contest import Contest, RunResult
from hexflow_simulator.contestreport import remarks
from hexflow_simulator.measure import Figures, Spread, spread
from hexflow_simulator.standings import SHOWN, Measure, Standing, Standings


def contest_data(
    contest: Contest, found: Standings, *, notes: Sequence[str], load: float | None
) -> dict[str, Any]:
    """Return everything that was found; ``load`` is the rate over that which no placement could pass."""
    return {
        "complete": found.complete,
        "measure": found.measure.value,
        "best": found.best.label,
        "equals": [row.label for row in found.equals],
        "seeds": list(found.seeds),
        "traffic": {
            "name": contest.traffic.name,
            "queries": contest.traffic.count,
            "queriesPerSecond": _number(contest.traffic.rate),
            "load": load,
        },
        "fleet": [
            {
                "instance": each.instance.instance_id,
                "pool": each.instance.pool,
                "gpuType": each.instance.gpu_type,
            }
            for each in contest.fleet
        ],
        "policies": [_standing_data(contest, row) for row in found.rows],
        "bound": _figures_data([each.figures for each in found.bounds]) if found.bounds else None,
        "notes": [*notes, *remarks(found)],
    }


def _standing_data(contest: Contest, row: Standing) -> dict[str, Any]:
    return {
        "label": row.label,
        "policy": row.entry.policy,
        "parameters": dict(row.entry.parameters),
        **{_camel(each): _spread_data(row.value(each)) for each in SHOWN},
        "behind": _spread_data(row.behind),
        "callsPerQuery": row.calls_per_query,
        "byInstance": {name: _plain(asdict(spent)) for name, spent in row.by_instance.items()},
        "byStage": {name: _plain(asdict(spent)) for name, spent in row.by_stage.items()},
        "runs": [_run_data(run) for run in row.runs],
        "atRates": [
            {
                "pace": run.run.pace,
                "queriesPerSecond": _number(contest.traffic.rate * run.run.pace),
                "p95": _number(run.figures.p95),
            }
            for run in row.paced
        ],
    }


def _run_data(run: RunResult) -> dict[str, Any]:
    return {
        "seed": run.run.seed,
        **_plain(asdict(run.figures)),
        "calls": run.calls,
        "failedCalls": run.failed_calls,
        "retries": run.retries,
        "unanswered": dict(run.reasons),
    }


def _figures_data(figures: Sequence[Figures]) -> dict[str, Any]:
    return {_camel(each): _spread_data(spread([each.of(found) for found in figures])) for each in SHOWN}


def _spread_data(values: Spread) -> dict[str, float | None]:
    return {"median": _number(values.median), "low": _number(values.low), "high": _number(values.high)}


def _camel(measure: Measure) -> str:
    return measure.value[0].lower() + measure.value[1:]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "".join(word if not place else word.capitalize() for place, word in enumerate(name.split("_"))): (
            _number(value) if isinstance(value, float) else value
        )
        for name, value in values.items()
    }


def _number(value: float) -> float | None:
    return value if -inf < value < inf else None
