"""The resources of a namespace as the operator hands them to the router and the tuner: in one ConfigMap.

`data["resources.json"]` is a v1 List with the GPUPools and TextToSQLWorkflows, oldest first, and the ConfigMaps that
pools name for their profiles; past PLAIN_BYTES it is `binaryData["resources.json.gz"]` instead. Secrets stand in it by
reference only, and what concerns pods alone is left out, so that a change to it does not touch the router.
"""

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hexflow_api.gpupool import GPUPool
from hexflow_api.lenient import parse_leniently
from hexflow_api.manifest import ConfigMap
from hexflow_api.problem import Problem, ResourceError
from hexflow_api.resources import Resources
from hexflow_api.workflow import TextToSQLWorkflow

RESOURCES_KEY: Final = "resources.json"
COMPRESSED_KEY: Final = "resources.json.gz"
PLAIN_BYTES: Final = 256 * 1024
MOST_BYTES: Final = 1024 * 1024
"""What Kubernetes lets a ConfigMap hold."""
MOST_UNPACKED_BYTES: Final = 64 * MOST_BYTES
_OF_PODS = ("replicas", "placement", "cache", "sharedMemory", "resources", "podTemplate")

Manifest = Mapping[str, Any]


def oldest_first(resources: Iterable[Manifest]) -> list[Manifest]:
    """Return resources by age, then by name: where they disagree the first one wins."""
    return sorted(
        resources,
        key=lambda each: (str(each["metadata"].get("creationTimestamp") or ""), each["metadata"]["name"]),
    )


def handed_over(
    pools: Sequence[Manifest], workflows: Sequence[Manifest], config_maps: Sequence[Manifest]
) -> bytes:
    """Return the text that is handed over."""
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


def packed(text: bytes) -> dict[str, dict[str, str]] | None:
    """Return the fields of a ConfigMap that holds ``text``, compressed if need be; None if none can."""
    if len(text) <= PLAIN_BYTES:
        return {"data": {RESOURCES_KEY: text.decode()}}
    compressed = gzip.compress(text, mtime=0)
    if len(compressed) > MOST_BYTES:
        return None
    return {"binaryData": {COMPRESSED_KEY: base64.b64encode(compressed).decode()}}


def taken_over(config_map: Manifest) -> tuple[Resources, tuple[str, ...]]:
    """Return the resources in a ConfigMap, oldest first, and what was passed over, in sentences.

    One that cannot be read is passed over, and so are fields of a newer version: neither may stop the others. What a
    resource names need not be there. Raises ResourceError where the whole cannot be read.
    """
    pools: list[GPUPool] = []
    workflows: list[TextToSQLWorkflow] = []
    config_maps: list[ConfigMap] = []
    notes: list[str] = []
    for item in _items(config_map):
        metadata = item["metadata"]
        if item["kind"] == "ConfigMap":
            config_maps.append(
                ConfigMap(name=metadata["name"], namespace=metadata["namespace"], data=item["data"])
            )
            continue
        title = f"{item['kind']} {metadata['name']}"
        try:
            resource, unknown = parse_leniently(item)
        except ResourceError as error:
            notes.append(f"{title} is passed over: {error}")
            continue
        notes += [f"{title}: {', '.join(unknown)} of a newer version is passed over"] if unknown else []
        if isinstance(resource, GPUPool):
            pools.append(resource)
        else:
            workflows.append(resource)
    resources = Resources(pools=tuple(pools), workflows=tuple(workflows), config_maps=tuple(config_maps))
    return resources, tuple(notes)


def _items(config_map: Manifest) -> list[dict[str, Any]]:
    try:
        if compressed := (config_map.get("binaryData") or {}).get(COMPRESSED_KEY):
            inflate = zlib.decompressobj(wbits=31)
            text = inflate.decompress(base64.b64decode(compressed, validate=True), MOST_UNPACKED_BYTES)
        else:
            text = config_map["data"][RESOURCES_KEY]
        items: list[dict[str, Any]] = json.loads(text)["items"]
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        name = (config_map.get("metadata") or {}).get("name")
        message = f"holds no list of resources ({type(error).__name__}: {error}); the operator writes it anew"
        raise ResourceError([Problem(object=f"ConfigMap {name}", message=message)]) from None
    return items


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
    data = {key: config_map["data"][key]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
