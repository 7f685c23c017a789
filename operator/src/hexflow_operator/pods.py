"""Why a pod is not ready, in the words of who knows: the scheduler, the kubelet, the container itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hexflow_api.condition import Reason
from hexflow_operator.conditions import seconds_of
from hexflow_operator.observed import Manifest

GRAVEST_FIRST: Final = (
    Reason.QUOTA_EXCEEDED,
    Reason.PODS_REFUSED,
    Reason.SECRET_NOT_FOUND,
    Reason.CONFIG_MAP_NOT_FOUND,
    Reason.IMAGE_NOT_PULLED,
    Reason.CONTAINER_FAILED,
    Reason.UNSCHEDULABLE,
    Reason.MODEL_LOADING,
    Reason.STARTING,
)
"""Where pods fail for several reasons, the first of these is told."""
PATIENT: Final = (Reason.MODEL_LOADING, Reason.STARTING)
"""Reasons that time takes away."""
IMAGE_WAITS: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
LAST_WORDS: Final = 600
"""Characters of a container's last output that are told: its end, where the error is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Say what keeps a pod from being ready."""

    reason: Reason
    message: str
    since: float | None = None
    """When it began, in seconds since the epoch, where that is known."""


def is_ready(pod: Manifest) -> bool:
    """Tell whether a pod is ready and stays."""
    if pod["metadata"].get("deletionTimestamp"):
        return False
    return _condition(pod, "Ready").get("status") == "True"


def troubles(pods: Iterable[Manifest], deployment: Manifest | None) -> list[Trouble]:
    """Return what is wrong with the pods that are to stay, and with their making, the gravest first."""
    found = [_of_making(deployment)] if deployment else []
    found += [_named(pod, _of_pod(pod)) for pod in _by_name(pods)]
    known = [each for each in found if each is not None]
    return sorted(known, key=lambda each: GRAVEST_FIRST.index(each.reason))


def _by_name(pods: Iterable[Manifest]) -> Sequence[Manifest]:
    return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))


def _of_making(deployment: Manifest) -> Trouble | None:
    failure = _condition(deployment, "ReplicaFailure")
    if failure.get("status") != "True":
        return None
    message = failure.get("message", "")
    reason = Reason.QUOTA_EXCEEDED if "exceeded quota" in message else Reason.PODS_REFUSED
    return Trouble(reason=reason, message=message)


def _of_pod(pod: Manifest) -> Trouble | None:
    if pod["metadata"].get("deletionTimestamp") or is_ready(pod):
        return None
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return Trouble(
            reason=Reason.UNSCHEDULABLE,
            message=scheduled.get("message") or "the scheduler has not said why",
            since=seconds_of(scheduled.get("lastTransitionTime")),
        )
    status = pod.get("status") or {}
    first = [each for each in status.get("initContainerStatuses") or () if not _has_succeeded(each)]
    containers = [*first, *(status.get("containerStatuses") or ())]
    found = [trouble for trouble in map(_of_container, containers) if trouble]
    if found:
        return min(found, key=lambda each: GRAVEST_FIRST.index(each.reason))
    running = any("running" in (each.get("state") or {}) for each in status.get("containerStatuses") or ())
    if running:
        return Trouble(reason=Reason.MODEL_LOADING, message="the engine runs and its model is not loaded yet")
    return Trouble(reason=Reason.STARTING, message="its containers are being started")


def _of_container(container: Manifest) -> Trouble | None:
    state = container.get("state") or {}
    waiting = state.get("waiting") or {}
    why, message = waiting.get("reason", ""), waiting.get("message") or ""
    if why in IMAGE_WAITS:
        # the kubelet turns between two reasons; what follows the first is the same
        return Trouble(reason=Reason.IMAGE_NOT_PULLED, message=message.split("ErrImagePull: ")[-1] or why)
    if why in ("CreateContainerConfigError", "CreateContainerError"):
        return Trouble(reason=_missing(message), message=message)
    last = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    if last and (last.get("exitCode", 0) != 0 or container.get("restartCount")):
        return Trouble(reason=Reason.CONTAINER_FAILED, message=_last_words(last))
    failed = why == "CrashLoopBackOff" or why.endswith("Error")
    return Trouble(reason=Reason.CONTAINER_FAILED, message=message or why) if failed else None


def _has_succeeded(container: Manifest) -> bool:
    ended = (container.get("state") or {}).get("terminated")
    return ended is not None and ended.get("exitCode") == 0


def _missing(message: str) -> Reason:
    if "secret" in message:
        return Reason.SECRET_NOT_FOUND
    return Reason.CONFIG_MAP_NOT_FOUND if "configmap" in message else Reason.CONTAINER_FAILED


def _last_words(ended: Manifest) -> str:
    reason = ended.get("reason", "Error")
    said = f"the engine ended with exit code {ended.get('exitCode')} ({reason})"
    words = (ended.get("message") or "").strip()[-LAST_WORDS:]
    return f"{said}; its last words: {words}" if words else said


def _named(pod: Manifest, trouble: Trouble | None) -> Trouble | None:
    return trouble and replace(trouble, message=f"pod {pod['metadata']['name']}: {trouble.message}")


def _condition(manifest: Manifest, kind: str) -> dict[str, Any]:
    found = (manifest.get("status") or {}).get("conditions") or ()
    return next((each for each in found if each["type"] == kind), {})
