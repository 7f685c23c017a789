"""Findings turned into conditions, transitions into events.

`lastTransitionTime` is that of the last change of a condition's status, and stays while only the words change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from hexflow_api.condition import MAX_MESSAGE, ConditionType, Reason
from hexflow_operator.decision import Event, reference_to
from hexflow_operator.observed import Manifest, Refusal

Truth = Literal["True", "False", "Unknown"]
MAX_NOTE = 1024


class Finding(NamedTuple):
    """Say how one condition is now."""

    status: Truth
    reason: Reason
    message: str


def truth(value: bool) -> Truth:
    """Return a condition's status for ``value``."""
    return "True" if value else "False"


def timestamp(seconds: float) -> str:
    """Return a point in time as Kubernetes writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str | None) -> float | None:
    """Return the seconds since the epoch that a Kubernetes timestamp says; None for none."""
    return datetime.fromisoformat(text).timestamp() if text else None


def conditions(
    findings: Mapping[ConditionType, Finding], resource: Manifest, *, now: float
) -> list[dict[str, Any]]:
    """Return the conditions of ``resource`` with ``findings`` about its current generation."""
    before = {each["type"]: each for each in _conditions_of(resource)}
    result = []
    for kind, finding in findings.items():
        last = before.get(kind.value)
        unchanged = last is not None and last["status"] == finding.status
        result.append(
            {
                "type": kind.value,
                "status": finding.status,
                "reason": finding.reason.value,
                "message": _cut(finding.message, MAX_MESSAGE),
                "lastTransitionTime": last["lastTransitionTime"] if last and unchanged else timestamp(now),
                "observedGeneration": resource["metadata"].get("generation", 0),
            }
        )
    return result


SILENT = (ConditionType.RECONCILING, ConditionType.STALLED)
"""Conditions for programs: what they say, Ready says to people."""
GOOD = (
    Reason.SUSPENDED,
    Reason.SCALED_TO_ZERO,
    Reason.TUNING_OFF,
    Reason.NOT_TUNED_YET,
    Reason.TOO_FEW_QUERIES,
)
"""Reasons that nobody needs to be warned of though the condition is not True."""


def transitions(findings: Mapping[ConditionType, Finding], resource: Manifest) -> tuple[Event, ...]:
    """Return an event for each condition whose status or reason is another than before.

    Beside Ready, one that is there for the first time is worth an event only where it is False.
    """
    before = {each["type"]: (each["status"], each["reason"]) for each in _conditions_of(resource)}
    regarding = reference_to(resource)
    return tuple(
        Event(
            regarding=regarding,
            type="Warning" if finding.status == "False" and finding.reason not in GOOD else "Normal",
            reason=finding.reason.value,
            action="Reconcile",
            note=_cut(finding.message or finding.reason.sentence, MAX_NOTE),
        )
        for kind, finding in findings.items()
        if kind not in SILENT
        and before.get(kind.value) != (finding.status, finding.reason.value)
        and (kind is ConditionType.READY or kind.value in before or finding.status == "False")
    )


def last_finding(resource: Manifest, kind: ConditionType) -> Finding | None:
    """Return what was found about the current generation last time, for where nobody can be asked now."""
    for each in _conditions_of(resource):
        current = each.get("observedGeneration") == resource["metadata"].get("generation", 0)
        if each["type"] == kind.value and current and each["reason"] in {reason.value for reason in Reason}:
            return Finding(each["status"], Reason(each["reason"]), each["message"])
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacles:
    """Hold what stands in the way of a resource, whatever its pods do."""

    blocked: Finding | None = None
    """It is not obeyed."""
    refused: tuple[Refusal, ...] = ()
    """The API server refused some of its children; others may serve."""
    passed_over: tuple[str, ...] = ()
    """Fields that only a newer operator knows."""

    def ready(self, found: Finding) -> Finding:
        """Return the condition Ready where ``found`` is how the pods are."""
        refusal = self._refusal() if found.status != "True" else None
        return self.blocked or refusal or found

    def stalled(self, found: Finding | None) -> Finding:
        """Return the condition Stalled where ``found`` is what is wrong with the pods that time does not cure."""
        cause = self.blocked or self._refusal() or found or self._unknown()
        if cause is None:
            return Finding("False", Reason.SETTLED, "nothing stands in the way")
        return Finding("True", cause.reason, cause.message)

    def _refusal(self) -> Finding | None:
        if not self.refused:
            return None
        first = self.refused[0]
        known = {each.value: each for each in (Reason.FORBIDDEN, Reason.NAME_TAKEN)}
        reason = known.get(first.reason, Reason.APPLY_FAILED)
        if "exceeded quota" in first.message:
            reason = Reason.QUOTA_EXCEEDED
        message = f"{first.kind} {first.name}: {first.message}"
        return Finding("False", reason, message)

    def _unknown(self) -> Finding | None:
        message = f"passed over: {', '.join(self.passed_over)}"
        return Finding("False", Reason.UNKNOWN_FIELDS, message) if self.passed_over else None


def reconciling(message: str | None) -> Finding:
    """Return the condition Reconciling: what is on its way, None for nothing."""
    if message is None:
        return Finding("False", Reason.SETTLED, "nothing is on its way")
    return Finding("True", Reason.PROGRESSING, message)


def _conditions_of(resource: Manifest) -> Sequence[Mapping[str, Any]]:
    return (resource.get("status") or {}).get("conditions") or ()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
