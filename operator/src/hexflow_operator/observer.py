"""What a plan reads, gathered: from the cache, and live where nothing is watched or where it has to be certain."""

import asyncio
from collections.abc import Mapping
from typing import Final

from hexflow_cluster import Cluster, Kind, selector_text
from hexflow_operator.cache import Cache
from hexflow_operator.children.metadata import API_VERSION, MANAGER
from hexflow_operator.feed import Feed
from hexflow_operator.observed import (
    ROUTER_NAME,
    Key,
    Manifest,
    Observed,
    Refusal,
    RouterReport,
    key_of_child,
)
from hexflow_operator.plan import MONITOR_KIND
from hexflow_operator.resync import Resync

KINDS: Final = {
    "GPUPool": Kind(API_VERSION, "GPUPool"),
    "TextToSQLWorkflow": Kind(API_VERSION, "TextToSQLWorkflow"),
}
POD: Final = Kind("v1", "Pod")
CONFIG_MAP: Final = Kind("v1", "ConfigMap")
MONITOR: Final = Kind(*MONITOR_KIND)


class Observer:
    """Read what is there."""

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        feed: Feed,
        resync: Resync,
        *,
        reports: Mapping[str, RouterReport],
    ) -> None:
        """``reports``: by namespace, what its router said last."""
        self._cluster, self._cache, self._feed, self._resync = cluster, cache, feed, resync
        self._reports = reports
        self._monitored: dict[str, bool] = {}
        """By namespace, whether its router had a ServiceMonitor at the last look."""

    async def observe(self, key: Key, refused: tuple[Refusal, ...]) -> Observed:
        """Return what is known of a key. Raises ClusterError where it has to be read and cannot."""
        router = Key("Router", key.namespace, ROUTER_NAME)
        pools = self._cache.pools(key.namespace)
        primary = None if key.kind == "Router" else self._cache.find(*key)
        return Observed(
            primary=primary,
            pools=pools,
            workflows=self._cache.workflows(key.namespace),
            children=(*self._children(key), *await self._monitors(key)),
            pods=await self._pods(key, primary),
            router=self._cache.find("Deployment", key.namespace, ROUTER_NAME),
            router_pods=self._cache.pods(router),
            config_maps=await self._config_maps(key, pools if key.kind == "Router" else (primary,)),
            report=self._reports.get(key.namespace),
            refused=refused,
        )

    async def confirm(self, key: Key) -> bool:
        """Set right what is known of a key's resources; tell whether it was right."""
        if key.kind == "Router":
            found = [await self._resync.namespace(kind, key.namespace) for kind in KINDS.values()]
            right = all(found)
        else:
            known = self._cache.find(*key)
            live = await self._cluster.find(KINDS[key.kind], key.name, namespace=key.namespace)
            right = _same(known, live)
            if known and (live is None or known["metadata"]["uid"] != live["metadata"]["uid"]):
                self._feed.gone(known)
            if live is not None:
                self._feed.seen(live)
        if not right:
            self._feed.flush()
        return right

    async def is_taken(self, key: Key, manifest: Manifest) -> bool:
        """Tell whether somebody else has an object of the name of one that is to be made.

        Ours are known by their labels; one that has lost them, by who has applied to it.
        """
        metadata = manifest["metadata"]
        kind = Kind(manifest["apiVersion"], manifest["kind"])
        found = await self._cluster.find(kind, metadata["name"], namespace=metadata["namespace"])
        if found is None or key_of_child(found) == key:
            return False
        return MANAGER not in {each.get("manager") for each in found["metadata"].get("managedFields") or ()}

    async def _pods(self, key: Key, primary: Manifest | None) -> tuple[Manifest, ...]:
        selector = ((primary or {}).get("spec") or {}).get("selector")
        if key.kind != "GPUPool" or selector is None:
            return self._cache.pods(key)
        listing = await self._cluster.list(POD, namespace=key.namespace, labels=selector_text(selector))
        return listing.items

    def _children(self, key: Key) -> tuple[Manifest, ...]:
        return tuple(each for each in self._cache.children(key) if each["kind"] != MONITOR.kind)

    async def _monitors(self, key: Key) -> tuple[Manifest, ...]:
        """Return the router's ServiceMonitor. It is read and not watched: most clusters have no such kind.

        Read where it is wanted or was there, and once in any case, for an earlier process may have made it.
        """
        specs = (each["spec"].get("router") or {} for each in self._cache.workflows(key.namespace))
        wanted = any(spec.get("serviceMonitor") for spec in specs)
        if key.kind != "Router" or not (wanted or self._monitored.get(key.namespace, True)):
            return ()
        found = await self._cluster.find(MONITOR, ROUTER_NAME, namespace=key.namespace)
        self._monitored[key.namespace] = found is not None
        return () if found is None or key_of_child(found) != key else (found,)

    async def _config_maps(self, key: Key, pools: tuple[Manifest | None, ...]) -> tuple[Manifest, ...]:
        names = sorted(
            {
                reference["name"]
                for pool in pools
                if (reference := (((pool or {}).get("spec") or {}).get("profile") or {}).get("configMapRef"))
            }
        )
        found = await asyncio.gather(
            *(self._cluster.find(CONFIG_MAP, name, namespace=key.namespace) for name in names)
        )
        return tuple(each for each in found if each is not None)


def _same(known: Manifest | None, live: Manifest | None) -> bool:
    if known is None or live is None:
        return known is live
    return bool(known["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"])
