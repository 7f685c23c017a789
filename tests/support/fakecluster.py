"""A Kubernetes API in memory, as `hexflow_cluster.Cluster` speaks to it: versions, uids, refusals, and a log of writes."""

import copy
from collections.abc import Mapping
from itertools import count
from typing import Any

from hexflow_cluster import ClusterError, Conflict, Kind, Listing, NotFound, kind_of

Object = dict[str, Any]


class FakeCluster:
    """Hold objects by kind, namespace and name; every write is noted and may be refused."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.writes: list[tuple[str, str, str]] = []
        """Verb, kind and name."""
        self.reads: list[tuple[str, str]] = []
        """Verb and kind."""
        self.refuse: dict[tuple[str, str], ClusterError] = {}
        """Verb and kind -> what is answered."""
        self._numbers = count(100)

    def put(self, manifest: Mapping[str, Any]) -> Object:
        """Make or change an object behind everybody's back; return it as it is read."""
        item = copy.deepcopy(dict(manifest))
        metadata = item["metadata"]
        metadata.setdefault("namespace", "team")
        place = (item["kind"], metadata["namespace"], metadata["name"])
        number = next(self._numbers)
        there = self.objects.get(place)
        metadata["uid"] = metadata.get("uid") or (there["metadata"]["uid"] if there else f"uid-{number}")
        generation = there["metadata"]["generation"] if there else 0
        changed = there is None or there.get("spec") != item.get("spec")
        metadata["generation"] = generation + changed
        metadata["resourceVersion"] = str(number)
        self.objects[place] = item
        return copy.deepcopy(item)

    def remove(self, kind: str, name: str, *, namespace: str = "team") -> Object:
        """Delete an object behind everybody's back."""
        return self.objects.pop((kind, namespace, name))

    async def find(self, kind: Kind, name: str, *, namespace: str | None = None) -> Object | None:
        self.reads.append(("get", kind.kind))
        self._fail("get", kind.kind)
        return copy.deepcopy(self.objects.get((kind.kind, namespace or "", name)))

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        names_only: bool = False,
    ) -> Listing:
        self.reads.append(("list", kind.kind))
        self._fail("list", kind.kind)
        items = [
            copy.deepcopy(each if not names_only else _names(each))
            for (each_kind, each_namespace, _), each in self.objects.items()
            if each_kind == kind.kind
            and namespace in (None, each_namespace)
            and (labels is None or labels in (each["metadata"].get("labels") or {}))
        ]
        return Listing(items=tuple(items), resource_version=str(next(self._numbers)))

    async def apply(self, manifest: Object, **_: Any) -> Object:
        return self._write("apply", manifest, manifest)

    async def apply_status(self, manifest: Object) -> Object:
        metadata = manifest["metadata"]
        there = self.objects.get((manifest["kind"], metadata["namespace"], metadata["name"]))
        if there is None:
            raise NotFound("not found", status=404)
        if metadata.get("uid", there["metadata"]["uid"]) != there["metadata"]["uid"]:
            raise Conflict("another uid", status=409)
        return self._write("status", manifest, {**there, "status": manifest["status"]})

    async def create(self, manifest: Object) -> Object:
        return self._write("create", manifest, manifest)

    async def delete(
        self, kind: Kind, name: str, *, namespace: str | None = None, uid: str | None = None, **_: Any
    ) -> None:
        self._fail("delete", kind.kind)
        self.writes.append(("delete", kind.kind, name))
        there = self.objects.get((kind.kind, namespace or "", name))
        if there is not None and uid in (None, there["metadata"]["uid"]):
            del self.objects[kind.kind, namespace or "", name]

    def _write(self, verb: str, asked: Object, item: Object) -> Object:
        kind = kind_of(asked).kind
        self._fail(verb, kind)
        self.writes.append((verb, kind, asked["metadata"]["name"]))
        return self.put(item)

    def _fail(self, verb: str, kind: str) -> None:
        for place in ((verb, kind), ("*", kind), (verb, "*")):
            if error := self.refuse.get(place):
                raise error


def _names(item: Object) -> Object:
    return {key: item[key] for key in ("apiVersion", "kind", "metadata")}
