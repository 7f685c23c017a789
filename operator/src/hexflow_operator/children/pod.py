"""What the pods of all children have in common: the narrow security context, placement, times, folders to write to."""

from typing import Any, Final

from hexflow_api.meta import Placement
from hexflow_operator.defaults import Defaults

OUT_OF_ROTATION_SECONDS: Final = 5
"""Sleep before SIGTERM: who sends requests learns in this time that the pod is going, and it answers all the while."""


def pod_security(*, user: int | None = None) -> dict[str, Any]:
    """Return the pod's security context: PodSecurity `restricted`, under the image's user unless one is given."""
    context: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if user is not None:
        # fsGroup makes a claim's files writable; OnRootMismatch spares walking through terabytes at each start
        group = {"runAsGroup": user, "fsGroup": user, "fsGroupChangePolicy": "OnRootMismatch"}
        context |= {"runAsUser": user, **group}
    return context


def container_security(*, read_only: bool) -> dict[str, Any]:
    """Return a container's security context."""
    context: dict[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {**context, "readOnlyRootFilesystem": True} if read_only else context


def prestop() -> dict[str, Any]:
    """Return the lifecycle that takes a pod out of rotation before it is told to end."""
    return {"preStop": {"sleep": {"seconds": OUT_OF_ROTATION_SECONDS}}}


def http_probe(path: str, *, period: int, failures: int, timeout: int = 5) -> dict[str, Any]:
    """Return a probe of the container's port `http`; times in seconds."""
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }


def variables(values: dict[str, str]) -> list[dict[str, Any]]:
    """Return environment variables as Kubernetes has them."""
    return [{"name": name, "value": value} for name, value in values.items()]


def placed(placement: Placement | None, defaults: Defaults) -> dict[str, Any]:
    """Return the fields of a pod's spec that say where it runs and from which registry it comes."""
    fields = placement.model_dump(mode="json", by_alias=True, exclude_none=True) if placement else {}
    if defaults.image_pull_secrets:
        fields["imagePullSecrets"] = [{"name": name} for name in defaults.image_pull_secrets]
    return fields
