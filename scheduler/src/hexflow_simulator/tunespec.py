"""What a workflow's resource says about tuning: policy, what may change and how far, what for, how much it takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hexflow_api import TextToSQLWorkflow
from hexflow_scheduler import Policy
from hexflow_simulator.objective import Objective
from hexflow_simulator.tune import knob_of
from hexflow_simulator.tuning import Knob, Limits

DEFAULTS: Final = Limits(min_queries=100, min_improvement=0.03, window_seconds=86_400.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSpec:
    """Hold what ``tune`` is told of a workflow."""

    policy: Policy
    """With the values in force."""
    knob: Knob | None
    """None where the parameter is pinned, or the policy has none."""
    objective: Objective
    limits: Limits
    mode: str
    """Off, Recommend or Auto."""


def tune_spec(workflow: TextToSQLWorkflow, *, in_force: Mapping[str, float] | None = None) -> TuneSpec:
    """Return what a workflow says; ``in_force`` are the values that tuning found before, where they count."""
    spec = workflow.spec
    values = {**spec.scheduling.initial_parameters, **(in_force or {})}
    policy = Policy.named(spec.scheduling.policy, **values)
    tuning = spec.tuning
    free = knob_of(policy)
    given = None if free is None else getattr(spec.scheduling, free.name, None)
    if given is not None and given.value is not None:
        free = None
    elif given is not None:
        free = knob_of(policy, low=given.min, high=given.max)
    if free is not None and tuning is not None and tuning.max_step is not None:
        free = knob_of(policy, low=free.low, high=free.high, max_step=tuning.max_step)
    return TuneSpec(
        policy=policy,
        knob=free,
        objective=Objective(spec.slo.objective),
        limits=limits_of(workflow),
        mode="Off" if tuning is None else tuning.mode,
    )


def limits_of(workflow: TextToSQLWorkflow) -> Limits:
    """Return when a change is worth making, the defaults where the workflow does not say."""
    tuning = workflow.spec.tuning
    if tuning is None:
        return DEFAULTS
    return Limits(
        min_queries=DEFAULTS.min_queries if tuning.min_queries is None else tuning.min_queries,
        min_improvement=DEFAULTS.min_improvement
        if tuning.min_improvement is None
        else tuning.min_improvement,
        window_seconds=DEFAULTS.window_seconds
        if tuning.window_seconds is None
        else float(tuning.window_seconds),
        max_age_seconds=DEFAULTS.window_seconds
        if tuning.window_seconds is None
        else float(tuning.window_seconds),
    )
