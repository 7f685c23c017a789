"""The report of a run of tuning: what should be in force, how every value did, how every other policy would have."""

from collections.abc import Sequence

from hexflow_simulator.chart import Chart, parameter_curve
from hexflow_simulator.measure import Spread
from hexflow_simulator.objective import Objective
from hexflow_simulator.report import Column, Report, Table
from hexflow_simulator.tuning import SpeedFit, TuningResult, Verdict

UNITS = {
    Objective.P95: "P95, seconds",
    Objective.REQ95: "Req95, multiples of the SLO",
    Objective.ATTAINMENT: "answered in time, share",
    Objective.RATE: "sustainable rate, times the trace's",
}
CHANGED = 0.05
"""Of a speed: what differs by less is as it was believed."""


def tuning_report(result: TuningResult, *, notes: Sequence[str] = ()) -> Report:
    """Return the report; its summary is the verdict."""
    return Report(
        title=f"Tuning {result.policy}",
        summary=(result.message, *_advised(result)),
        facts=_facts(result),
        tables=tuple(table for table in (_curve(result), _advice(result), _speeds(result.speeds)) if table),
        charts=_charts(result),
        notes=tuple(notes),
    )


def _facts(result: TuningResult) -> tuple[tuple[str, str], ...]:
    facts = [("Objective", UNITS[result.objective])]
    if result.workflow:
        facts.insert(0, ("Workflow", result.workflow))
    if result.trace is not None:
        trace = result.trace
        facts.append(
            ("Trace", f"{trace.queries:,} queries in {trace.seconds:,.0f} s, sha256 {trace.sha256[:12]}")
        )
    facts += [(name, f"{value:.4g} in force") for name, value in result.before.items()]
    if result.gain is not None and result.score is not None and result.score_before is not None:
        facts.append(("In force", _spread(result.score_before)))
        facts.append(
            (
                f"{result.parameter} {result.proposed:.4g}",
                f"{_spread(result.score)}, better by {_gain(result.gain, result.objective)}",
            )
        )
    return tuple(facts)


def _advised(result: TuningResult) -> tuple[str, ...]:
    ahead = [each for each in result.advice if each.gain.low > 0]
    if not result.advice:
        return ()
    if not ahead:
        return (
            f"No other policy, with its defaults, would have done better than {result.policy} on every trace.",
        )
    best = ahead[0]
    return (
        f"{best.policy} would have done better on every trace: by {_gain(best.gain, result.objective)}. Compare them with hexflow simulate before you change the policy.",
    )


def _curve(result: TuningResult) -> Table | None:
    if not result.curve:
        return None
    values = [point.value for point in result.curve]
    best = {values.index(result.proposed)} if result.proposed in values else set()
    now = result.before.get(result.parameter or "")
    return Table(
        title=f"Every {result.parameter}, on the trace as it was recorded",
        columns=(
            Column(name=str(result.parameter)),
            Column(name=UNITS[result.objective]),
            Column(name="", numbers=False),
        ),
        rows=tuple(
            (f"{point.value:.4g}", f"{point.score:#.4g}", "in force" if point.value == now else "")
            for point in result.curve
        ),
        best=frozenset(best) if result.verdict is Verdict.TUNED else frozenset(),
        note="A value is taken for what it does on traces like this one, not for one point of this curve.",
    )


def _advice(result: TuningResult) -> Table | None:
    if not result.advice:
        return None
    return Table(
        title=f"Other policies with their defaults, against {result.policy} as it is in force",
        columns=(
            Column(name="Policy", numbers=False),
            Column(name=UNITS[result.objective]),
            Column(name="Better by", hint="Share of the objective; below zero it is worse."),
        ),
        rows=tuple(
            (each.policy, _spread(each.score), _gain(each.gain, result.objective)) for each in result.advice
        ),
    )


def _speeds(speeds: Sequence[SpeedFit]) -> Table | None:
    if not speeds:
        return None
    return Table(
        title="How fast instances were, against their profiles",
        columns=(
            Column(name="Instance", numbers=False),
            Column(name="GPU", numbers=False),
            Column(name="Calls"),
            Column(name="Prefill took"),
            Column(name="Decode took"),
            Column(name="", numbers=False),
        ),
        rows=tuple(
            (
                fit.instance_id or fit.pool,
                fit.gpu_type,
                f"{fit.calls:,}",
                f"{fit.prefill:.2f} x",
                f"{fit.decode:.2f} x",
                _changed(fit),
            )
            for fit in speeds
        ),
    )


def _changed(fit: SpeedFit) -> str:
    if max(abs(fit.prefill - 1), abs(fit.decode - 1)) < CHANGED:
        return "as believed"
    return "slower" if fit.prefill + fit.decode > 2 else "faster"


def _charts(result: TuningResult) -> tuple[Chart, ...]:
    if not result.curve or result.parameter is None:
        return ()
    return (
        parameter_curve(
            result.parameter,
            [(point.value, point.score) for point in result.curve],
            objective=UNITS[result.objective],
            chosen=result.proposed,
            in_force=result.before.get(result.parameter),
        ),
    )


def _spread(found: Spread) -> str:
    return f"{found.median:#.4g} ({found.low:#.4g}-{found.high:#.4g})"


def _gain(found: Spread, objective: Objective) -> str:
    unit = " points" if objective is Objective.ATTAINMENT else " %"
    return f"{100 * found.median:+.1f}{unit} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
