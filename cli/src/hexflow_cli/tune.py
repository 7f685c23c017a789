"""`hexflow tune`: replay a trace to find the value of a policy's parameter that would have served it best."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from hexflow_api import InlineProfile, TextToSQLWorkflow, label
from hexflow_api.tuned import IN_FORCE_KEY, OUTCOME_KEY, RECOMMENDED_KEY
from hexflow_cli.console import print_json, say, stderr, stdout
from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.outputpath import refuse_unwritable_file
from hexflow_cli.reporttable import show_report
from hexflow_scheduler import DEFAULT_POLICY, Estimates, InvalidParameter, Parameters, Policy, UnknownPolicy
from hexflow_simulator.complaint import InvalidTrace, InvalidWorkload
from hexflow_simulator.eventimport import EventLogFile
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.fleetfile import read_fleet
from hexflow_simulator.importing import open_trace
from hexflow_simulator.knobs import BASELINES
from hexflow_simulator.objective import Objective
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.speedfit import Observed, by_pool, read_observed, refitted
from hexflow_simulator.traffic import unserved
from hexflow_simulator.tune import knob_of, tune
from hexflow_simulator.tunereport import tuning_report
from hexflow_simulator.tunespec import DEFAULTS, TuneSpec, tune_spec
from hexflow_simulator.tuning import SpeedFit, TuningResult, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """Hold what the command line says; None leaves it to the workflow's resource, or to the default."""

    trace: Path
    fleet: Sequence[Path]
    workflow: str | None
    policy: str | None
    in_force: float | None
    low: float | None
    high: float | None
    max_step: float | None
    objective: str | None
    min_queries: int | None
    min_improvement: float | None
    window_seconds: float | None
    model: str | None
    slo_seconds: float | None
    replicas: int
    advice: bool
    write: Path | None
    write_profile: Path | None
    html: Path | None
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """Hold what is tuned on."""

    queries: Sequence[SimulatedQuery]
    fleet: Sequence[SimulatedInstance]
    workflow: TextToSQLWorkflow | None
    observed: Observed | None
    speeds: Sequence[SpeedFit]
    notes: Sequence[str]

    @property
    def estimates(self) -> Estimates | None:
        """What the router had learned."""
        return None if self.observed is None else self.observed.estimates


def tune_command(options: TuneOptions) -> int:
    """Tune, show the result, write what was asked for; raises CommandError and ResourceError."""
    for path in (options.write, options.write_profile, options.html):
        refuse_unwritable_file(path)
    try:
        given = _given(options)
        spec = _spec(options, given)
    except (InvalidTrace, InvalidWorkload, UnknownPolicy, InvalidParameter) as error:
        raise CommandError(str(error), code=ExitCode.USAGE, reason=type(error).__name__) from error
    with _bar() as progress:
        result = tune(
            given.queries,
            given.fleet,
            policy=spec.policy,
            knob=spec.knob,
            objective=spec.objective,
            limits=spec.limits,
            workflow=options.workflow or "",
            others=_others(given, spec),
            estimates=given.estimates,
            advice=(DEFAULT_POLICY, *BASELINES.values()) if options.advice else (),
            speeds=given.speeds,
            replicas=options.replicas,
            progress=progress,
        )
    _show(options, given, spec, result)
    return ExitCode.FAILED if result.verdict is Verdict.TOO_FEW_QUERIES else ExitCode.DONE


def _given(options: TuneOptions) -> _Given:
    files = read_fleet(options.fleet) if options.fleet else None
    models = files.models if files else ("model",)
    trace = open_trace(options.trace, model=options.model or models[0], slo_seconds=options.slo_seconds)
    observed = read_observed(options.trace) if isinstance(trace, EventLogFile) else None
    queries = list(trace)
    if options.slo_seconds is not None:
        queries = [replace(query, slo_seconds=options.slo_seconds) for query in queries]
    if options.model is not None:
        queries = [replace(query, model=options.model, pools=None) for query in queries]
    notes = list(files.notes) if files else []
    if left_out := getattr(trace, "left_out", 0):
        notes.append(f"{left_out} queries of the trace failed or did not end and are left out.")
    if files is not None:
        fits = by_pool(observed.speeds) if observed else {}
        fleet = [_as_observed(each, fits) for each in files.instances]
        speeds: Sequence[SpeedFit] = tuple(fits.values())
    elif observed is not None:
        fleet, speeds = list(observed.fleet), observed.speeds
    else:
        raise CommandError(
            f"{options.trace} does not say what served it; name your GPUPools with --fleet (an event log of a router says it).",
            code=ExitCode.USAGE,
            reason="NoFleet",
        )
    stranger = unserved(queries, fleet)
    if stranger is not None:
        raise CommandError(
            f"Query {stranger.query_id} of {options.trace} asks for {stranger.model}, and no instance of the fleet has that; "
            "send all queries to one model with --model.",
            code=ExitCode.USAGE,
            reason="NotServed",
        )
    workflow = _workflow(options, files.resources.workflows if files else ())
    _refuse_stranger(options, queries)
    return _Given(
        queries=queries, fleet=fleet, workflow=workflow, observed=observed, speeds=speeds, notes=notes
    )


def _as_observed(source: SimulatedInstance, fits: Mapping[str, SpeedFit]) -> SimulatedInstance:
    fit = fits.get(source.instance.pool)
    return source if fit is None else replace(source, profile=refitted(source.instance.profile, fit))


def _workflow(options: TuneOptions, workflows: Sequence[TextToSQLWorkflow]) -> TextToSQLWorkflow | None:
    if options.workflow is None:
        return workflows[0] if len(workflows) == 1 else None
    found = next((each for each in workflows if each.name == options.workflow), None)
    if found is None and workflows:
        names = ", ".join(each.name for each in workflows)
        raise CommandError(
            f"No TextToSQLWorkflow is called {options.workflow!r} in these files; there are: {names}.",
            code=ExitCode.USAGE,
            reason="WorkflowNotFound",
        )
    return found


def _refuse_stranger(options: TuneOptions, queries: Sequence[SimulatedQuery]) -> None:
    """Refuse a workflow that no query of the trace is of."""
    names = sorted({query.workflow for query in queries})
    if options.workflow is None or options.workflow in names:
        return
    found = ", ".join(name for name in names if name)
    there = f"its workflows are {found}" if found else "it names no workflow; leave --workflow out"
    raise CommandError(
        f"No query of {options.trace} is of the workflow {options.workflow!r}; {there}.",
        code=ExitCode.USAGE,
        reason="WorkflowNotInTrace",
    )


def _spec(options: TuneOptions, given: _Given) -> TuneSpec:
    spec = _stated(options, given)
    policy = spec.policy if options.policy is None else Policy.named(options.policy)
    knob = spec.knob if options.policy is None else knob_of(policy)
    bounds = knob_of(policy, low=options.low, high=options.high)
    if knob is not None and bounds is not None:
        knob = replace(
            knob,
            low=knob.low if options.low is None else bounds.low,
            high=knob.high if options.high is None else bounds.high,
            max_step=options.max_step or knob.max_step,
        )
        if not knob.low <= knob.high:  # not a number, either
            raise CommandError(
                f"{knob.name} lies between {knob.low:g} and {knob.high:g}: that leaves nothing; give --min below --max.",
                code=ExitCode.USAGE,
                reason="BadBounds",
            )
    if options.in_force is not None and bounds is not None:
        policy = replace(
            policy, parameters=Parameters(**{bounds.name: options.in_force}).over(policy.parameters)
        )
    limits = spec.limits
    if options.min_queries is not None:
        limits = replace(limits, min_queries=options.min_queries)
    if options.min_improvement is not None:
        limits = replace(limits, min_improvement=options.min_improvement)
    if options.window_seconds is not None:
        limits = replace(limits, window_seconds=options.window_seconds)
    return replace(
        spec, policy=policy, knob=knob, objective=_objective(options.objective, spec.objective), limits=limits
    )


def _stated(options: TuneOptions, given: _Given) -> TuneSpec:
    if given.workflow is not None:
        return tune_spec(given.workflow)
    policy = given.observed.policy if given.observed else Policy.named()
    return TuneSpec(
        policy=policy,
        knob=knob_of(policy),
        objective=Objective.P95,
        limits=replace(DEFAULTS, window_seconds=None),
        mode="Recommend",
    )


def _objective(word: str | None, stated: Objective) -> Objective:
    if word is None:
        return stated
    for objective in Objective:
        if objective.value.lower() == word.lower():
            return objective
    raise CommandError(
        f"There is no objective {word!r}; there are: {', '.join(Objective)}.",
        code=ExitCode.USAGE,
        reason="UnknownObjective",
    )


def _others(given: _Given, spec: TuneSpec) -> dict[str, Parameters]:
    if given.observed is None or given.observed.policy.dispatch != spec.policy.dispatch:
        return {}
    return dict(given.observed.parameters)


def _show(options: TuneOptions, given: _Given, spec: TuneSpec, result: TuningResult) -> None:
    report = tuning_report(result, notes=given.notes)
    if options.as_json:
        print_json(_finite(result.to_data()))
    else:
        show_report(report, stdout)
    if options.write is not None:
        name = given.workflow.name if given.workflow else options.workflow or "workflow"
        _write(options.write, yaml.safe_dump(_config_map(name, spec, result), sort_keys=False))
        say(Text(f"Parameters: {options.write}"))
    if options.write_profile is not None:
        _write(options.write_profile, _profiles(given))
        say(Text(f"Profiles: {options.write_profile}"))
    if options.html is not None:
        from hexflow_simulator.page import write_html  # drawing takes a second to import

        try:
            write_html(report, options.html)
        except OSError as error:
            raise _not_written(options.html, error) from error
        say(Text(f"Report: {options.html}"))


def _config_map(workflow: str, spec: TuneSpec, result: TuningResult) -> dict[str, Any]:
    """Return the ConfigMap that the tuner of a cluster would write."""
    mode = spec.mode if spec.mode != "Off" else "Recommend"
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = result.as_parameters(when=when, mode=mode)
    outcome = {
        "reason": "Tuned" if result.verdict != "TooFewQueries" else "TooFewQueries",
        "message": result.message,
    }
    key = IN_FORCE_KEY if mode == "Auto" else RECOMMENDED_KEY
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{workflow}-policy",
            "labels": {label.PART: label.POLICY_PART, label.WORKFLOW: workflow},
        },
        "data": {key: json.dumps(found), OUTCOME_KEY: json.dumps(outcome)},
    }


def _profiles(given: _Given) -> str:
    """Return a ConfigMap for each pool, with the profile that the trace shows, for ``spec.profile.configMapRef``."""
    found: dict[str, str] = {}
    fits = by_pool(given.speeds)
    for source in given.fleet:
        fit = fits.get(source.instance.pool)
        profile = source.instance.profile if fit is None else refitted(source.instance.profile, fit)
        inline = InlineProfile(
            **{name: _digits(getattr(profile, name)) for name in ("t0", "t1", "t2", "c1", "c2")},
            kv_tokens=profile.kv_tokens,
            slots=profile.slots,
        )
        found.setdefault(source.instance.pool, json.dumps(inline.model_dump(by_alias=True, mode="json")))
    documents = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{pool}-profile"},
            "data": {"profile.json": text},
        }
        for pool, text in found.items()
    ]
    return yaml.safe_dump_all(documents, sort_keys=False)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> CommandError:
    return CommandError(
        f"{path} cannot be written ({error.strerror}).", code=ExitCode.ENVIRONMENT, reason="NotWritten"
    )


def _finite(value: Any) -> Any:
    """Return data with null for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        task = progress.add_task("simulations", total=None)

        def tell(done: int, planned: int) -> None:
            progress.update(task, completed=done, total=planned)

        yield tell
