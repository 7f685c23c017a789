"""The look that trusts no watch: everything is listed anew now and then, by names and versions.

kopf tells nothing of objects that were deleted while its watch was down, and a watch may be dead without a sign. So
uids and versions are compared with the API server's own, and what differs is set right and reconciled.
"""

import logging
from collections.abc import Iterable, Sequence

from hexflow_cluster import Cluster, ClusterError, Kind
from hexflow_operator.cache import Cache, version
from hexflow_operator.feed import Feed
from hexflow_operator.observed import Manifest

_log = logging.getLogger("hexflow.operator.resync")


class Resync:
    """Compare the cache with the API server."""

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        feed: Feed,
        *,
        kinds: Sequence[tuple[Kind, str | None]],
        namespaces: Sequence[str],
    ) -> None:
        """Take the kinds with their label selectors, and the namespaces (empty: all of them)."""
        self._cluster, self._cache, self._feed = cluster, cache, feed
        self._kinds, self._namespaces = kinds, namespaces or (None,)

    async def run(self) -> dict[str, int]:
        """Compare everything once; return by kind how many objects no watch had told of. Raises ClusterError."""
        missed = {}
        try:
            for kind, labels in self._kinds:
                if count := await self._kind(kind, labels):
                    missed[kind.kind] = count
                    _log.warning("%d %s had changed without a watch telling", count, kind.kind)
        finally:
            self._feed.flush()
        return missed

    async def namespace(self, kind: Kind, namespace: str) -> bool:
        """Compare the unlabelled objects of one kind in one namespace; tell whether the cache was right."""
        before = {
            each["metadata"]["uid"]: each
            for each in self._cache.of_kind(kind.kind)
            if each["metadata"].get("namespace") == namespace
        }
        listing = await self._cluster.list(kind, namespace=namespace, names_only=True)
        return await self._compare(kind, before, listing.items) == 0

    async def _kind(self, kind: Kind, labels: str | None) -> int:
        # Only what was there before the list was asked for may be missed in it.
        before = {each["metadata"]["uid"]: each for each in self._cache.of_kind(kind.kind)}
        found: list[Manifest] = []
        for namespace in self._namespaces:
            listing = await self._cluster.list(kind, namespace=namespace, labels=labels, names_only=True)
            found += listing.items
        return await self._compare(kind, before, found)

    async def _compare(self, kind: Kind, before: dict[str, Manifest], found: Iterable[Manifest]) -> int:
        there = {each["metadata"]["uid"]: each for each in found}
        count = 0
        for uid in before.keys() - there.keys():
            self._feed.gone(before[uid])
            count += 1
        for item in there.values():
            name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "")
            known = self._cache.find(kind.kind, namespace, name)
            if known is not None and version(known) >= version(item):
                continue
            count += 1
            try:
                if now := await self._cluster.find(kind, name, namespace=namespace):
                    self._feed.seen(now)
            except ClusterError as error:
                _log.warning("%s %s/%s cannot be read: %s", kind.kind, namespace, name, error)
        return count
