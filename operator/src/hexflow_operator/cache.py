"""What was last seen of the cluster's objects: fed by watches, by our own writes, and by lists that set it right.

Of each object the newest version wins, from wherever it came, so that our own write is known before its event
arrives and an event that was overtaken changes nothing. What nobody here reads is not kept. No I/O.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from hexflow_operator.observed import Key, Manifest, key_of_child

POOL: Final = "GPUPool"
WORKFLOW: Final = "TextToSQLWorkflow"
_REMEMBERED_DEAD: Final = 10_000
"""Deleted objects whose last version is remembered, so that a late answer does not bring one back."""
_POD_SPEC: Final = ("nodeName", "containers", "schedulingGates")
_NOT_KEPT: Final = "kubectl.kubernetes.io/last-applied-configuration"

_Id = tuple[str, str, str]
"""Kind, namespace, name."""


class Change(NamedTuple):
    """Tell what became of one object; None: it was not there, or is no longer."""

    before: Manifest | None
    now: Manifest | None

    @property
    def object(self) -> Manifest:
        """The object as it is, or as it last was."""
        found = self.now or self.before
        assert found is not None  # noqa: S101 - a change is of something
        return found


class Cache:
    """Hold the pools, the workflows, and all that is made for them."""

    def __init__(self) -> None:
        self._objects: dict[_Id, Manifest] = {}
        self._in_namespace: defaultdict[tuple[str, str], dict[str, Manifest]] = defaultdict(dict)
        self._of_key: defaultdict[Key, dict[_Id, Manifest]] = defaultdict(dict)
        self._dead: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._objects)

    def put(self, manifest: Manifest) -> Change | None:
        """Note an object as it is now; return what changed, None if that was known or something newer is."""
        place, uid = _id(manifest), manifest["metadata"]["uid"]
        before = self._objects.get(place)
        known = max(version(before) if before else -1, self._dead.get(uid, -1))
        if version(manifest) <= known:
            return None
        now = stripped(manifest)
        self._remove(place, before)
        self._objects[place] = now
        if place[0] in (POOL, WORKFLOW):
            self._in_namespace[place[:2]][place[2]] = now
        elif key := key_of_child(now):
            self._of_key[key][place] = now
        return Change(before, now)

    def drop(self, manifest: Manifest) -> Change | None:
        """Note that an object is gone, or has lost the label by which it is watched; return what changed."""
        place, uid = _id(manifest), manifest["metadata"]["uid"]
        self._dead[uid] = version(manifest)
        if len(self._dead) > _REMEMBERED_DEAD:
            self._dead.popitem(last=False)
        before = self._objects.get(place)
        if before is None or before["metadata"]["uid"] != uid:
            return None
        self._remove(place, before)
        return Change(before, None)

    def find(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object."""
        return self._objects.get((kind, namespace, name))

    def pools(self, namespace: str) -> tuple[Manifest, ...]:
        """Return the pools of a namespace."""
        return tuple(self._in_namespace.get((POOL, namespace), {}).values())

    def workflows(self, namespace: str) -> tuple[Manifest, ...]:
        """Return the workflows of a namespace."""
        return tuple(self._in_namespace.get((WORKFLOW, namespace), {}).values())

    def namespaces(self) -> set[str]:
        """Return the namespaces that have a pool or a workflow."""
        return {namespace for (_, namespace), objects in self._in_namespace.items() if objects}

    def children(self, key: Key) -> tuple[Manifest, ...]:
        """Return what is made for a key, but for its pods."""
        return tuple(each for each in self._labelled(key) if each["kind"] != "Pod")

    def pods(self, key: Key) -> tuple[Manifest, ...]:
        """Return the pods of what is made for a key."""
        return tuple(each for each in self._labelled(key) if each["kind"] == "Pod")

    def of_kind(self, kind: str) -> Iterator[Manifest]:
        """Yield every object of a kind."""
        return (each for place, each in self._objects.items() if place[0] == kind)

    def all_keys(self) -> set[Key]:
        """Return every key there is something for: resources, and what has outlived them."""
        resources = {
            Key(place[0], place[1], place[2])  # type: ignore[arg-type]
            for place in self._objects
            if place[0] in (POOL, WORKFLOW)
        }
        return resources | {key for key, objects in self._of_key.items() if objects}

    def _labelled(self, key: Key) -> Iterable[Manifest]:
        return self._of_key.get(key, {}).values()

    def _remove(self, place: _Id, before: Manifest | None) -> None:
        if before is None:
            return
        del self._objects[place]
        if place[0] in (POOL, WORKFLOW):
            del self._in_namespace[place[:2]][place[2]]
        elif key := key_of_child(before):
            self._of_key[key].pop(place, None)
            if not self._of_key[key]:
                del self._of_key[key]


def version(manifest: Manifest) -> int:
    """Return an object's version; the API server's grow (KEP-5504 says that they may be compared)."""
    return int(manifest["metadata"]["resourceVersion"])


def stripped(manifest: Manifest) -> Manifest:
    """Return an object without what nobody here reads: most of it is about who owns which field."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    if _NOT_KEPT in (annotations := metadata.get("annotations") or {}):
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != _NOT_KEPT}
    slim: dict[str, Any] = {**manifest, "metadata": metadata}
    if manifest["kind"] == "Pod":
        spec = {key: value for key, value in manifest.get("spec", {}).items() if key in _POD_SPEC}
        spec["containers"] = [{"name": each["name"]} for each in spec.get("containers", ())]
        slim["spec"] = spec
    return slim


def _id(manifest: Manifest) -> _Id:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]
