"""What the tuner has found, as the status of a workflow tells it.

The seam to the tuner is the ConfigMap `<workflow>-policy`, which it writes and owns: ``parameters.json`` (in force,
mode Auto: the router reads it), ``recommended.json`` (mode Recommend) and ``outcome.json`` (the last run), each a JSON
object::

    parameters.json, recommended.json   {"parameters": {"alpha": 0.4}, "since": "2026-11-30T07:00:00Z"}
    outcome.json                        {"reason": "Tuned", "message": "…"}
"""

import contextlib
import json
from typing import Any, Final

from pydantic import ValidationError

from hexflow_api import TextToSQLWorkflow
from hexflow_api.condition import Reason
from hexflow_api.policy import PARAMETERS
from hexflow_api.status import ParameterInForce, RecommendedParameter
from hexflow_operator.conditions import Finding, seconds_of
from hexflow_operator.observed import Manifest, RouterReport

OVERDUE_SECONDS: Final = 3600.0
"""Runs that have begun and not ended well for so long have failed."""
OUTCOMES: Final = {Reason.TUNED: "True", Reason.TOO_FEW_QUERIES: "False", Reason.ROLLED_BACK: "False"}


def tuning_finding(
    workflow: TextToSQLWorkflow, *, cron_job: Manifest | None, policy: Manifest | None
) -> Finding | None:
    """Return the condition TuningFresh; None for a workflow that says nothing of tuning."""
    tuning = workflow.spec.tuning
    if tuning is None:
        return None
    if tuning.mode == "Off":
        return Finding(status="False", reason=Reason.TUNING_OFF, message="tuning.mode is Off")
    status = (cron_job or {}).get("status") or {}
    begun, ended = seconds_of(status.get("lastScheduleTime")), seconds_of(status.get("lastSuccessfulTime"))
    if begun is None:
        return Finding(status="Unknown", reason=Reason.NOT_TUNED_YET, message="the tuner has not run yet")
    since = (
        ended
        if ended is not None
        else seconds_of(((cron_job or {}).get("metadata") or {}).get("creationTimestamp"))
    )
    if since is not None and begun - since > OVERDUE_SECONDS:
        return Finding(
            status="False", reason=Reason.TUNING_FAILED, message="no run has ended well for an hour"
        )
    outcome = _json(policy, "outcome.json")
    reason = next((each for each in OUTCOMES if each.value == outcome.get("reason")), None)
    if reason is None:
        return Finding(
            status="Unknown", reason=Reason.NOT_TUNED_YET, message="the tuner has said nothing yet"
        )
    message = str(outcome.get("message") or reason.sentence)
    return Finding(status="True" if reason is Reason.TUNED else "False", reason=reason, message=message)


def parameters_in_force(
    workflow: TextToSQLWorkflow, resource: Manifest, report: RouterReport | None
) -> dict[str, ParameterInForce]:
    """Return the parameters of the workflow's policy: what the router says, else what is pinned, was tuned, or begins."""
    reported = _of_report(workflow, report).get("parameters")
    if isinstance(reported, dict):
        with contextlib.suppress(ValidationError):  # a router of another version says what we do not know
            return {name: ParameterInForce.model_validate(each) for name, each in sorted(reported.items())}
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


def recommended_parameters(policy: Manifest | None) -> dict[str, RecommendedParameter]:
    """Return what the tuner would choose."""
    found = _json(policy, "recommended.json")
    values, since = found.get("parameters"), found.get("since")
    if not isinstance(values, dict):
        return {}
    return {
        name: RecommendedParameter(value=float(value), since=since if isinstance(since, str) else None)
        for name, value in sorted(values.items())
        if isinstance(value, int | float)
    }


def measured(workflow: TextToSQLWorkflow, resource: Manifest, report: RouterReport | None) -> dict[str, Any]:
    """Return the measurements of the router for the status: the last ones while nobody could ask it.

    Rounded, so that a status is written when something has changed and not when the last digit has.
    """
    if report is None:
        before = resource.get("status") or {}
        kept = ("p95Seconds", "attainment", "attainmentPercent")
        return {key: before[key] for key in kept if key in before}
    found = _of_report(workflow, report)
    result: dict[str, Any] = {}
    if (p95 := found.get("p95Seconds")) is not None:
        result["p95Seconds"] = float(f"{p95:.3g}")
    if (attainment := found.get("attainment")) is not None:
        result["attainment"] = round(float(attainment), 3)
        result["attainmentPercent"] = f"{100 * attainment:.1f}"
    return result


def _of_report(workflow: TextToSQLWorkflow, report: RouterReport | None) -> Manifest:
    return (report.content.get("workflows", {}).get(workflow.name) or {}) if report else {}


def _json(policy: Manifest | None, key: str) -> dict[str, Any]:
    try:
        found = json.loads(((policy or {}).get("data") or {}).get(key) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
