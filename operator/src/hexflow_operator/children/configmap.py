"""The ConfigMap `hexflow-router`, which hands the namespace's resources to its router (`hexflow_api.handover`)."""

from collections.abc import Sequence
from typing import Any

from hexflow_api.handover import packed
from hexflow_operator.children.metadata import child_of_all
from hexflow_operator.observed import Manifest


def router_config_map(
    resources: Sequence[Manifest], text: bytes, *, namespace: str, last: Manifest | None
) -> dict[str, Any] | None:
    """Return the ConfigMap with ``text``; with what ``last`` held where that is too large, None if nothing fits."""
    content = packed(text)
    if content is None and last is not None:
        content = {key: dict(last[key]) for key in ("data", "binaryData") if last.get(key)}
    if content is None:
        return None
    metadata = child_of_all(resources, namespace=namespace)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}
