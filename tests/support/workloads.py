"""What a stream of simulated queries comes to, on average."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.mix import mix_named
from hexflow_simulator.query import SimulatedCall, SimulatedQuery
from hexflow_simulator.shape import calls_of
from hexflow_simulator.workload import Workload


@dataclass(frozen=True, slots=True)
class Averages:
    """Hold means over queries, and by stage over calls."""

    calls: float
    prompt_tokens: float
    output_tokens: float
    stages: dict[str, tuple[float, float, float]]
    """Calls a query, prompt tokens and output tokens a call."""


def averages(queries: Iterable[SimulatedQuery]) -> Averages:
    """Return the means of some queries."""
    each = [calls_of(query.stages) for query in queries]
    by_stage: dict[str, list[SimulatedCall]] = {}
    for calls in each:
        for stage, call in calls:
            by_stage.setdefault(stage, []).append(call)
    return Averages(
        calls=fmean(len(calls) for calls in each),
        prompt_tokens=fmean(sum(call.prompt_tokens for _, call in calls) for calls in each),
        output_tokens=fmean(sum(call.output_tokens for _, call in calls) for calls in each),
        stages={
            stage: (
                len(calls) / len(each),
                fmean(call.prompt_tokens for call in calls),
                fmean(call.output_tokens for call in calls),
            )
            for stage, calls in by_stage.items()
        },
    )


def a_workload(mix: str = "natural", **fields: object) -> Workload:
    """Return a workload of one query a second."""
    usual: dict[str, object] = {"mix": mix_named(mix), "arrivals": Poisson(1.0), "model": "coder"}
    return Workload(**{**usual, **fields})  # type: ignore[arg-type]
