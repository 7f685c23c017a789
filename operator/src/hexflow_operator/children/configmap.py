"""The ConfigMap `hexflow-router`: the namespace's resources as its router reads them. No second schema.

`data["resources.json"]` is a v1 List with the GPUPools and TextToSQLWorkflows, oldest first, and the ConfigMaps that
pools name for their profiles; past PLAIN_BYTES it is `binaryData["resources.json.gz"]` instead. Secrets stand in it by
reference only, and what concerns pods alone is left out, so that a change to it does not touch the router.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from hexflow_operator.children.metadata import child_of_all
from hexflow_operator.observed import Manifest

RESOURCES_KEY: Final = "resources.json"
COMPRESSED_KEY: Final = "resources.json.gz"
PLAIN_BYTES: Final = 256 * 1024
MOST_BYTES: Final = 1024 * 1024
"""What Kubernetes lets a ConfigMap hold."""
_OF_PODS = ("replicas", "placement", "cache", "sharedMemory", "resources", "podTemplate")


def oldest_first(resources: Iterable[Manifest]) -> list[Manifest]:
    """Return resources by age, then by name: where they disagree the first one wins."""
    return sorted(resources, key=lambda each: (_created(each), each["metadata"]["name"]))


def _created(resource: Manifest) -> str:
    return str(resource["metadata"].get("creationTimestamp") or "")


def handed_over(
    pools: Sequence[Manifest], workflows: Sequence[Manifest], config_maps: Sequence[Manifest]
) -> bytes:
    """Return the text that the router is given, uncompressed."""
    wanted = {_profile_ref(pool) for pool in pools} - {None}
    items = [_resource(each) for each in (*oldest_first(pools), *oldest_first(workflows))]
    items += [
        _config_map(each, key)
        for each in sorted(config_maps, key=lambda each: str(each["metadata"]["name"]))
        for key in sorted(each.get("data") or {})
        if (each["metadata"]["name"], key) in wanted
    ]
    lines = ",\n".join(json.dumps(item, separators=(",", ":"), ensure_ascii=False) for item in items)
    return f'{{"apiVersion":"v1","kind":"List","items":[\n{lines}\n]}}\n'.encode()


def fits(text: bytes) -> bool:
    """Tell whether a ConfigMap can hold ``text``, compressed if need be."""
    return len(text) <= MOST_BYTES or len(gzip.compress(text, mtime=0)) <= MOST_BYTES


def router_config_map(
    resources: Sequence[Manifest], text: bytes, *, namespace: str, last: Manifest | None
) -> dict[str, Any] | None:
    """Return the ConfigMap with ``text``; with what ``last`` held where that is too large, None if nothing fits."""
    content: dict[str, Any]
    if len(text) <= PLAIN_BYTES:
        content = {"data": {RESOURCES_KEY: text.decode()}}
    elif len(packed := gzip.compress(text, mtime=0)) <= MOST_BYTES:
        content = {"binaryData": {COMPRESSED_KEY: base64.b64encode(packed).decode()}}
    elif last is not None:
        content = {key: dict(last[key]) for key in ("data", "binaryData") if last.get(key)}
    else:
        return None
    metadata = child_of_all(resources, namespace=namespace)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


def _resource(resource: Manifest) -> dict[str, Any]:
    metadata = resource["metadata"]
    # no generation: an autoscaler moves it
    kept = ("name", "namespace", "labels", "uid", "creationTimestamp")
    spec = {key: value for key, value in resource["spec"].items() if key not in _OF_PODS}
    if resource["kind"] == "GPUPool":
        engine = spec.pop("engine", None) or {}
        spec |= {"engine": {"port": engine["port"]}} if "port" in engine else {}
    else:
        spec.pop("router", None)
    return {
        "apiVersion": resource["apiVersion"],
        "kind": resource["kind"],
        "metadata": {key: metadata[key] for key in kept if metadata.get(key)},
        "spec": spec,
    }


def _profile_ref(pool: Manifest) -> tuple[str, str] | None:
    ref = (pool["spec"].get("profile") or {}).get("configMapRef")
    return (ref["name"], ref["key"]) if ref else None


def _config_map(config_map: Manifest, key: str) -> dict[str, Any]:
    metadata = {field: config_map["metadata"][field] for field in ("name", "namespace")}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {key: config_map["data"][key]},
    }
