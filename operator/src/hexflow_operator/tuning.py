"""What the tuner has found and the router has measured, as the status of a workflow tells it."""

from typing import Any, Final

from hexflow_api import TextToSQLWorkflow
from hexflow_api.condition import Reason
from hexflow_api.policy import PARAMETERS
from hexflow_api.report import Report
from hexflow_api.status import ParameterInForce, RecommendedParameter
from hexflow_api.tuned import Tuned
from hexflow_operator.conditions import Finding, seconds_of, truth
from hexflow_operator.observed import Manifest

OVERDUE_SECONDS: Final = 3600.0
"""Runs that have begun and not ended well for so long have failed."""
OUTCOMES: Final = (Reason.TUNED, Reason.TOO_FEW_QUERIES, Reason.ROLLED_BACK)


def tuning_finding(workflow: TextToSQLWorkflow, *, cron_job: Manifest | None, tuned: Tuned) -> Finding | None:
    """Return the condition TuningFresh; None for a workflow that says nothing of tuning."""
    tuning = workflow.spec.tuning
    if tuning is None:
        return None
    if tuning.mode == "Off":
        return Finding("False", Reason.TUNING_OFF, "tuning.mode is Off")
    status = (cron_job or {}).get("status") or {}
    begun, ended = seconds_of(status.get("lastScheduleTime")), seconds_of(status.get("lastSuccessfulTime"))
    if begun is None:
        return Finding("Unknown", Reason.NOT_TUNED_YET, "the tuner has not run yet")
    since = (
        ended
        if ended is not None
        else seconds_of(((cron_job or {}).get("metadata") or {}).get("creationTimestamp"))
    )
    if since is not None and begun - since > OVERDUE_SECONDS:
        return Finding("False", Reason.TUNING_FAILED, "no run has ended well for an hour")
    reason = next((each for each in OUTCOMES if tuned.outcome and each.value == tuned.outcome.reason), None)
    if tuned.outcome is None or reason is None:
        return Finding("Unknown", Reason.NOT_TUNED_YET, "the tuner has said nothing yet")
    return Finding(truth(reason is Reason.TUNED), reason, tuned.outcome.message or reason.sentence)


def parameters_in_force(
    workflow: TextToSQLWorkflow, resource: Manifest, report: Report | None
) -> dict[str, ParameterInForce]:
    """Return the parameters of the workflow's policy: what the router says, else what is pinned, was tuned, or begins."""
    said = report.workflows.get(workflow.name) if report else None
    if said and said.parameters is not None:
        return {
            name: ParameterInForce.model_validate(each.model_dump())
            for name, each in sorted(said.parameters.items())
            if each.source in ("Pinned", "Seed", "Tuned", "Default")
        }
    scheduling = workflow.spec.scheduling
    before = (resource.get("status") or {}).get("parameters") or {}
    found = {}
    for name in PARAMETERS.get(scheduling.rules[0], {}):
        given, last = getattr(scheduling, name, None), before.get(name)
        if given is not None and given.value is not None:
            found[name] = ParameterInForce(value=given.value, source="Pinned")
        elif report is None and last and last["source"] in ("Tuned", "Default"):
            found[name] = ParameterInForce.model_validate(last)
        elif given is not None:
            found[name] = ParameterInForce(value=given.initial, source="Seed")
    return found


def recommended_parameters(tuned: Tuned) -> dict[str, RecommendedParameter]:
    """Return what the tuner would choose."""
    found = tuned.recommended
    if found is None:
        return {}
    return {
        name: RecommendedParameter(value=value, since=found.since) for name, value in found.values.items()
    }


def measured(workflow: TextToSQLWorkflow, resource: Manifest, report: Report | None) -> dict[str, Any]:
    """Return the measurements of the router for the status: the last ones while nobody could ask it.

    Rounded, so that a status is written when something has changed and not when the last digit has.
    """
    if report is None:
        before = resource.get("status") or {}
        kept = ("p95Seconds", "attainment", "attainmentPercent")
        return {key: before[key] for key in kept if key in before}
    said = report.workflows.get(workflow.name)
    result: dict[str, Any] = {}
    if said and said.p95_seconds is not None:
        result["p95Seconds"] = float(f"{said.p95_seconds:.3g}")
    if said and said.attainment is not None:
        result["attainment"] = round(said.attainment, 3)
        result["attainmentPercent"] = f"{100 * said.attainment:.1f}"
    return result
