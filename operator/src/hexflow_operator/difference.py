"""Whether what is there is what should be: the one place that decides that nothing has changed.

Compared are the fields that we would apply, no others: what the API server has filled in, an autoscaler has set or an
injector has added is not ours. A field that we have dropped shows in the hash of the last applied manifest, which a
child carries in an annotation. Quantities are compared as amounts, and an empty value with none, as the API server
writes them.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from hexflow_operator.children.podtemplate import MERGE_KEYS
from hexflow_operator.observed import Manifest

APPLIED_ANNOTATION: Final = "hexflow.dev/applied"
"""On each child: a hash of what was applied."""

LIST_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    **MERGE_KEYS,
    "ownerReferences": ("uid",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "conditions": ("type",),
}
"""Lists that belong to several: an item is known by these fields, and items of others are left alone."""
_PORT_KEYS = {"containerPort": ("containerPort", "protocol"), "port": ("port", "protocol")}
_AMOUNTS = ("limits", "requests")
_NEVER_IMPLIED = (
    "automountServiceAccountToken",
    "enableServiceLinks",
    "allowPrivilegeEscalation",
    "replicas",
)
"""Fields whose absence is not the same as false or 0."""

_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)\Z")
_SUFFIXES = {
    **{
        suffix: Decimal(1000) ** power
        for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
    },
    **{
        suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)
    },
}


def stamped(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return ``manifest`` with the annotation that says what was applied."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED_ANNOTATION: digest}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def to_apply(desired: Iterable[dict[str, Any]], observed: Iterable[Manifest]) -> tuple[dict[str, Any], ...]:
    """Return, in order, the manifests (stamped) that the observed objects do not already match."""
    there = {identity(each): each for each in observed}
    return tuple(
        manifest for manifest in map(stamped, desired) if not covers(there.get(identity(manifest)), manifest)
    )


def identity(manifest: Manifest) -> tuple[str, str, str]:
    """Return kind, namespace and name of an object."""
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def covers(observed: Any, desired: Any, *, field: str = "") -> bool:
    """Tell whether ``observed`` has all that ``desired`` says; ``field`` is the name under which they stand."""
    if observed is None:
        return _is_implied(desired, field)
    if isinstance(desired, Mapping):
        if not isinstance(observed, Mapping):
            return False
        amounts = field in _AMOUNTS
        return all(
            same_amount(observed.get(key), value) if amounts else covers(observed.get(key), value, field=key)
            for key, value in desired.items()
        )
    if isinstance(desired, list | tuple):
        return isinstance(observed, list | tuple) and _covers_list(observed, desired, field)
    if field == "sizeLimit":
        return same_amount(observed, desired)
    return bool(observed == desired) and isinstance(observed, bool) == isinstance(desired, bool)


def _is_implied(value: Any, field: str) -> bool:
    if isinstance(value, Mapping):
        # `emptyDir: {}` says something by being there; `securityContext: {}` comes back as it is as well
        return False
    if isinstance(value, bool | int | float):
        return not value and field not in _NEVER_IMPLIED
    return value is None or len(value) == 0


def _covers_list(observed: Iterable[Any], desired: Iterable[Any], field: str) -> bool:
    wanted, there = list(desired), list(observed)
    keys = _keys(field, wanted)
    if not keys:
        return len(wanted) == len(there) and all(
            covers(old, new) for old, new in zip(there, wanted, strict=True)
        )
    known = {_name(item, keys): item for item in there}
    return all(covers(known.get(_name(item, keys)), item) for item in wanted)


def _keys(field: str, items: list[Any]) -> tuple[str, ...] | None:
    if field != "ports":
        return LIST_KEYS.get(field)
    return next((keys for name, keys in _PORT_KEYS.items() if all(name in item for item in items)), None)


def _name(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(item.get(key, "TCP" if key == "protocol" else None) for key in keys)


def same_amount(one: Any, other: Any) -> bool:
    """Tell whether two quantities (``1000m`` and ``1``) are the same amount."""
    if one is None or other is None:
        return one is other
    mine, theirs = _amount(str(one)), _amount(str(other))
    return str(one) == str(other) if mine is None or theirs is None else mine == theirs


def _amount(text: str) -> Decimal | None:
    match = _QUANTITY.match(text)
    if match is None or match[1].count(".") > 1 or not any(map(str.isdigit, match[1])):
        return None
    number = Decimal(match[1])
    return number.scaleb(int(match[2])) if match[2] else number * _SUFFIXES[match[3] or ""]
