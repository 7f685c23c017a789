"""Which keys have to be looked at when an object changed. Pure.

A change of an object concerns its own key, and those whose plan reads it: a workflow's status speaks of pools, of
other workflows and of the router; the router is made from the specs of all. Writing a status concerns nobody's
children, so a cluster at rest stays at rest.
"""

from collections.abc import Iterable

from hexflow_operator.cache import POOL, WORKFLOW, Change
from hexflow_operator.observed import ROUTER_NAME, Key, Manifest, key_of_child


def affected(change: Change, workflows: Iterable[Manifest]) -> set[Key]:
    """Return the keys to reconcile after a change; ``workflows`` are those of its namespace."""
    seen = change.object
    kind, namespace = seen["kind"], seen["metadata"].get("namespace", "")
    if kind in (POOL, WORKFLOW):
        keys = {Key(kind, namespace, seen["metadata"]["name"])}
        asks_otherwise = _asked(change.before) != _asked(change.now)
        if asks_otherwise:
            keys.add(Key("Router", namespace, ROUTER_NAME))
        if asks_otherwise or kind == POOL:
            keys |= _keys(workflows)
        return keys
    owners = {key for each in change if each is not None and (key := key_of_child(each))}
    if any(key.kind == "Router" for key in owners) and kind in ("Deployment", "Pod"):
        owners |= _keys(workflows)
    return owners


def asked_anew(change: Change) -> set[Key]:
    """Return the keys that were told something else by a person, so that an earlier failure says nothing of them."""
    seen = change.object
    kind, metadata = seen["kind"], seen["metadata"]
    before, now = (((each or {}).get("metadata") or {}).get("generation") for each in change)
    if kind not in (POOL, WORKFLOW) or before == now:
        return set()
    namespace = metadata.get("namespace", "")
    return {Key(kind, namespace, metadata["name"]), Key("Router", namespace, ROUTER_NAME)}


def all_of(namespace: str, pools: Iterable[Manifest], workflows: Iterable[Manifest]) -> set[Key]:
    """Return every key of a namespace."""
    return _keys(pools) | _keys(workflows) | {Key("Router", namespace, ROUTER_NAME)}


def _asked(manifest: Manifest | None) -> object:
    """Return what an object asks for, as opposed to how it is."""
    if manifest is None:
        return None
    metadata = manifest["metadata"]
    said = (metadata.get("labels"), metadata.get("annotations"), metadata.get("deletionTimestamp"))
    return metadata["uid"], metadata.get("generation"), said


def _keys(resources: Iterable[Manifest]) -> set[Key]:
    return {Key(each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]) for each in resources}
