"""The strategic merge of `podTemplate` onto the pods that are made: the last word, but for what selects them.

As `kubectl patch --type strategic`: groups merge, null takes out, lists of named things merge by name, any other
list is replaced; `$patch: delete` and `$patch: replace` are understood.
"""

from typing import Any, Final

MERGE_KEYS: Final = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "ports": ("containerPort",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "resourceClaims": ("name",),
}
"""Lists of a pod that merge, and the field by which an item is known (Kubernetes' patchMergeKey)."""


def merged(base: Any, patch: Any, *, field: str = "") -> Any:
    """Return ``base`` with ``patch`` laid over it; neither is changed. ``field`` is the name of the list they are."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return _group(base, patch)
    if isinstance(base, list) and isinstance(patch, list) and field in MERGE_KEYS:
        return _items(base, patch, *MERGE_KEYS[field])
    return _without_directives(patch)


def _group(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    result = dict(base)
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value, field=key)
    return result


def _items(base: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    result = {item[key]: item for item in base}
    for item in patch:
        name = item.get(key)
        if item.get("$patch") == "delete":
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), item)
    return list(result.values())


def _without_directives(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        key: _without_directives(item)
        for key, item in value.items()
        if not key.startswith("$") and item is not None
    }
