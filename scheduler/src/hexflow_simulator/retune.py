"""What a run of the tuner in a cluster decides: from an event log and the ConfigMap as it is to the ConfigMap to be.

A run changes one parameter by one step at most. A change is then watched: nothing more is changed before as many queries
as tuning wants have come after it, and if fewer of these were in time than before, it is taken back and left alone for a
while. Time is passed in; files are read, nothing is written.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import sqrt
from pathlib import Path
from typing import Any, Final

from hexflow_api import TextToSQLWorkflow
from hexflow_api.tuned import IN_FORCE_KEY, OUTCOME_KEY, RECOMMENDED_KEY, Outcome, read_tuned
from hexflow_simulator.complaint import InvalidTrace
from hexflow_simulator.eventimport import read_event_log
from hexflow_simulator.observing import Timeliness, look, timeliness
from hexflow_simulator.traffic import unserved
from hexflow_simulator.tune import tune
from hexflow_simulator.tunespec import TuneSpec, tune_spec
from hexflow_simulator.tuning import Knob, TuningResult, Verdict

MEMORY_KEY: Final = "memory.json"
"""What the tuner must remember of its last change; nobody else reads it."""
STEP_SHARE: Final = 0.2
"""Share of the parameter's range that one run changes at most, where the workflow does not say."""
LEAST_FALL: Final = 0.02
"""Points of attainment that count as a fall, however many queries show it."""
REST_SECONDS: Final = 3600.0
"""Time after a change was taken back in which nothing is tried."""

ConfigMap = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Hold what is to be known of the last change, and of when one was taken back."""

    changed_at: float | None = None
    before: float | None = None
    """The value before it."""
    attainment: float | None = None
    """Share in time before it; None where nobody knew."""
    queries: int = 0
    """How many that was reckoned from."""
    taken_back_at: float | None = None

    def as_text(self) -> str:
        """Return it as JSON."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({name: value for name, value in found.items() if value is not None}, sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retuned:
    """Hold what the ConfigMap is to say, and what a person reads in the log."""

    data: Mapping[str, str]
    said: str


def read_memory(config_map: ConfigMap | None) -> Memory:
    """Return what was remembered; nothing where it cannot be read."""
    try:
        found = json.loads(((config_map or {}).get("data") or {}).get(MEMORY_KEY) or "{}")
        known = {name: found[name] for name in Memory.__slots__ if isinstance(found.get(name), int | float)}
    except (ValueError, AttributeError, RecursionError):
        known = {}
    return Memory(**known)


def nothing_to_learn(config_map: ConfigMap | None, why: str) -> Retuned:
    """Return the ConfigMap as it is, with the outcome that there was nothing to learn from."""
    return _kept(config_map, Outcome(reason="TooFewQueries", message=why), read_memory(config_map))


def retune(workflow: TextToSQLWorkflow, config_map: ConfigMap | None, log: Path, *, now: float) -> Retuned:
    """Return what the ConfigMap of a workflow is to say after a look at a router's event log.

    ``now`` is seconds since the epoch, the log's.
    """
    spec = tune_spec(workflow)
    if spec.knob is None:
        return _at_rest(config_map, f"no parameter of {spec.policy.name} is open to tuning")
    try:
        seen = look(log)
        trace = read_event_log(log)
    except InvalidTrace as problem:
        return nothing_to_learn(
            config_map, f"the event log tells of no query that has ended ({problem.what})"
        )
    if seen.policy.dispatch != spec.policy.dispatch:
        return _at_rest(
            config_map, f"the policy in force is {seen.policy.name}: this workflow tunes nothing of it"
        )
    window = spec.limits.window_seconds or REST_SECONDS
    times = timeliness(log, workflow.name)
    if spec.mode == "Auto":
        watched = _watched(config_map, spec, times, now=now, window=window)
        if watched is not None:
            return watched
    queries = [query for query in trace if trace.first + query.arrival >= now - window]
    if not seen.fleet or unserved(queries, seen.fleet) is not None:
        return nothing_to_learn(config_map, "the instances of now are not those that served the log")
    knob = _bounded(spec.knob)
    result = tune(
        queries,
        seen.fleet,
        policy=seen.policy,
        knob=knob,
        objective=spec.objective,
        limits=spec.limits,
        workflow=workflow.name,
        others=seen.parameters,
        estimates=seen.estimates,
        age_seconds=max(0.0, now - seen.ended),
        speeds=seen.speeds,
    )
    return _concluded(config_map, spec, result, times.between(now - window, now), now=now)


def _bounded(knob: Knob) -> Knob:
    step = STEP_SHARE * (knob.high - knob.low)
    return knob if knob.max_step is not None else replace(knob, max_step=step)


def _watched(
    config_map: ConfigMap | None, spec: TuneSpec, times: Timeliness, *, now: float, window: float
) -> Retuned | None:
    """Return what to do about the last change; None where it has proved itself, or there was none."""
    assert spec.knob is not None  # noqa: S101 - seen to before
    name, memory = spec.knob.name, read_memory(config_map)
    if memory.taken_back_at is not None and now - memory.taken_back_at < min(window, REST_SECONDS):
        outcome = read_tuned(config_map).outcome
        return _kept(config_map, outcome or Outcome(reason="RolledBack"), memory)
    in_force = read_tuned(config_map).in_force
    if memory.changed_at is None or in_force is None or name not in in_force.values:
        return None
    after = times.between(memory.changed_at, now)
    value = in_force.values[name]
    if after.queries < spec.limits.min_queries:
        message = (
            f"{name} is {value:.4g} since {stamp(memory.changed_at)}, and is judged when"
            f" {spec.limits.min_queries} queries have ended since (minQueries)"
        )
        return _kept(config_map, Outcome(reason="Tuned", message=message), memory)
    before = memory.attainment
    if (
        before is None
        or memory.before is None
        or not _fell(before, memory.queries, after.share, after.queries)
    ):
        return None
    message = (
        f"{name} is {memory.before:.4g} again: with {value:.4g} {100 * after.share:.1f} % of the queries were in"
        f" time, and {100 * before:.1f} % before"
    )
    return _written(
        spec,
        {name: memory.before},
        Outcome(reason="RolledBack", message=message),
        Memory(taken_back_at=now),
        now=now,
    )


def _fell(before: float, queries_before: int, after: float, queries_after: int) -> bool:
    """Tell whether attainment fell by more than chance: two standard errors of the difference, and two points."""
    pooled = (before * queries_before + after * queries_after) / max(1, queries_before + queries_after)
    error = sqrt(pooled * (1 - pooled) * (1 / max(1, queries_before) + 1 / max(1, queries_after)))
    return before - after > max(LEAST_FALL, 2 * error)


def _concluded(
    config_map: ConfigMap | None,
    spec: TuneSpec,
    result: TuningResult,
    times: Timeliness,
    *,
    now: float,
) -> Retuned:
    name = result.parameter or ""
    if result.verdict is Verdict.TOO_FEW_QUERIES:
        window = f" in {spec.limits.window_seconds:g} s (windowSeconds)" if spec.limits.window_seconds else ""
        message = (
            f"fewer than {spec.limits.min_queries} queries (minQueries) have ended{window}, or none of late"
        )
        kept = _kept(config_map, Outcome(reason="TooFewQueries", message=message), Memory())
        return replace(kept, said=result.message)
    if result.verdict is not Verdict.TUNED:
        message = (
            f"{name} stays at {result.before[name]:.4g}: no other value was better by enough (minImprovement)"
        )
        kept = _kept(config_map, Outcome(reason="Tuned", message=message), Memory())
        return replace(kept, said=result.message)
    old, new = result.before[name], result.parameters[name]
    if spec.mode != "Auto":
        message = f"{name} {new:.4g} would serve better than {old:.4g}"
        return _written(
            spec, {name: new}, Outcome(reason="Tuned", message=message), Memory(), now=now, result=result
        )
    known = times.queries > 0
    remembered = Memory(
        changed_at=now,
        before=old,
        attainment=times.share if known else None,
        queries=times.queries,
    )
    message = f"{name} was {old:.4g} and is {new:.4g}"
    return _written(
        spec, {name: new}, Outcome(reason="Tuned", message=message), remembered, now=now, result=result
    )


def _written(
    spec: TuneSpec,
    values: Mapping[str, float],
    outcome: Outcome,
    memory: Memory,
    *,
    now: float,
    result: TuningResult | None = None,
) -> Retuned:
    found: dict[str, Any] = {"parameters": dict(values), "since": stamp(now), "policy": spec.policy.name}
    if result is not None:
        found |= result.as_parameters(when=stamp(now), mode=spec.mode)
    key = IN_FORCE_KEY if spec.mode == "Auto" else RECOMMENDED_KEY
    data = {key: json.dumps(found, sort_keys=True), OUTCOME_KEY: _text(outcome), MEMORY_KEY: memory.as_text()}
    said = result.message if result is not None else outcome.message
    return Retuned(data=data, said=said)


def _kept(config_map: ConfigMap | None, outcome: Outcome, memory: Memory) -> Retuned:
    """Leave the parameters as they are."""
    before = (config_map or {}).get("data") or {}
    kept = {key: before[key] for key in (IN_FORCE_KEY, RECOMMENDED_KEY) if key in before}
    data = {**kept, OUTCOME_KEY: _text(outcome), MEMORY_KEY: memory.as_text()}
    return Retuned(data=data, said=outcome.message)


def _at_rest(config_map: ConfigMap | None, message: str) -> Retuned:
    """Say that there is nothing to do; what was found before no longer holds."""
    return Retuned(data={OUTCOME_KEY: _text(Outcome(reason="Tuned", message=message))}, said=message)


def _text(outcome: Outcome) -> str:
    return json.dumps({"reason": outcome.reason, "message": outcome.message}, sort_keys=True)


def stamp(at: float) -> str:
    """Return an instant as Kubernetes writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
