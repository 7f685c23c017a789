"""The router's namespace, watched through the Kubernetes API: its ConfigMap, the pods of its pools, what was tuned.

While the API server is away everything stays as it was last seen; engines that die meanwhile are noticed by looking
at them (`watch.py`). Imported in a cluster only: on a laptop there need be no Kubernetes client.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Final

from hexflow_api.label import PART, POLICY_PART, WORKFLOW
from hexflow_cluster import Cluster, ClusterError, Kind, Manifest, WatchEvent

_log = logging.getLogger("hexflow.router.namespace")

CONFIG_MAP: Final = Kind("v1", "ConfigMap")
POD: Final = Kind("v1", "Pod")
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 10.0

ConfigMapListener = Callable[[Manifest | None], None]
PoliciesListener = Callable[[Mapping[str, Manifest]], None]


class NamespaceWatch:
    """Follow what concerns the router in one namespace. For one event loop.

    Listeners are called after every change, the first time when everything was listed.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        *,
        config_map: str,
        on_config_map: ConfigMapListener,
        on_pods: Callable[[], None],
        on_policies: PoliciesListener,
        relist_seconds: float = 300.0,
    ) -> None:
        """``on_policies`` gets ConfigMaps by their workflow; ``on_pods`` looks at ``pods``."""
        self._cluster, self._namespace, self._config_map = cluster, namespace, config_map
        self._on_config_map, self._on_pods, self._on_policies = on_config_map, on_pods, on_policies
        self._relist = relist_seconds
        self._pods: dict[str, dict[str, Manifest]] = {}
        self._policies: dict[str, Manifest] = {}
        self._config: dict[str, Manifest] = {}
        self._followers: dict[str, asyncio.Task[None]] = {}
        self._running = False
        self._listed_at: dict[str, float] = {}
        self.troubles: dict[str, str] = {}
        """Why something cannot be listed though it never was, by what it is."""

    @property
    def pods(self) -> Mapping[str, Collection[Manifest]]:
        """The pods that there are, by the selector that found them."""
        return {selector: tuple(found.values()) for selector, found in self._pods.items()}

    @property
    def pods_listed(self) -> bool:
        """Whether the pods of every pool were listed once, or it is known that they cannot be."""
        return {*map(_watch_of, self._pods)} <= self._listed_at.keys() | self.troubles.keys()

    def ages(self, now: float) -> dict[str, float]:
        """Return by what is watched how long ago it was listed; ``now`` is the loop's time."""
        ages: dict[str, float] = {}
        for watch, at in self._listed_at.items():
            what = watch.partition(" ")[0]
            ages[what] = max(ages.get(what, 0.0), now - at)
        return ages

    def select(self, selectors: Collection[str]) -> None:
        """Say by which selectors pods are found from now on."""
        for selector in [each for each in self._pods if each not in selectors]:
            watch = _watch_of(selector)
            del self._pods[selector]
            self._listed_at.pop(watch, None)
            self.troubles.pop(watch, None)
            if task := self._followers.pop(watch, None):
                task.cancel()
        for selector in selectors:
            self._pods.setdefault(selector, {})
        if self._running:
            self._settle()

    async def run(self) -> None:
        """Watch until cancelled."""
        self._running = True
        self._follow("configmap", self._config_maps, self._note_config_map)
        self._follow("policies", self._policy_maps, self._note_policy)
        self._settle()
        try:
            await asyncio.Event().wait()
        finally:
            self._running = False
            tasks = [*self._followers.values()]
            self._followers.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _settle(self) -> None:
        for selector in self._pods:
            if _watch_of(selector) not in self._followers:
                self._follow(_watch_of(selector), *self._pods_with(selector))

    def _follow(
        self, what: str, events: Callable[[], AsyncIterator[WatchEvent]], note: Callable[[WatchEvent], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        self._followers[what] = loop.create_task(self._followed(what, events, note), name=f"watch {what}")

    async def _followed(
        self, what: str, events: Callable[[], AsyncIterator[WatchEvent]], note: Callable[[WatchEvent], None]
    ) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                async for event in events():
                    if event.type == "Synced":
                        self._listed_at[what] = asyncio.get_running_loop().time()
                        self.troubles.pop(what, None)
                        pause = FIRST_PAUSE_SECONDS
                    self._noted(note, event)
            except ClusterError as error:  # the very first list failed; later ones go on by themselves
                if self.troubles.get(what) != str(error):
                    _log.warning("%s of namespace %s cannot be listed yet: %s", what, self._namespace, error)
                self.troubles[what] = str(error)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)

    def _noted(self, note: Callable[[WatchEvent], None], event: WatchEvent) -> None:
        try:
            note(event)
        except Exception:  # the next event is followed all the same
            _log.exception("A change in the namespace could not be put in force, by a defect.")

    # the ConfigMap with the resources

    def _config_maps(self) -> AsyncIterator[WatchEvent]:
        fields = f"metadata.name={self._config_map}"
        return self._cluster.watch(
            CONFIG_MAP, namespace=self._namespace, fields=fields, relist_seconds=self._relist
        )

    def _note_config_map(self, event: WatchEvent) -> None:
        if event.type == "Synced":
            self._on_config_map(self._config.get(self._config_map))
            return
        _keep(self._config, event)
        if "configmap" in self._listed_at:
            self._on_config_map(self._config.get(self._config_map))

    # what was tuned

    def _policy_maps(self) -> AsyncIterator[WatchEvent]:
        labels = f"{PART}={POLICY_PART}"
        return self._cluster.watch(
            CONFIG_MAP, namespace=self._namespace, labels=labels, relist_seconds=self._relist
        )

    def _note_policy(self, event: WatchEvent) -> None:
        _keep(self._policies, event)
        if "policies" in self._listed_at:
            self._on_policies(
                {
                    workflow: each
                    for name, each in self._policies.items()
                    if (workflow := (each["metadata"].get("labels") or {}).get(WORKFLOW))
                    and name == f"{workflow}-policy"
                }
            )

    # pods

    def _pods_with(
        self, selector: str
    ) -> tuple[Callable[[], AsyncIterator[WatchEvent]], Callable[[WatchEvent], None]]:
        def events() -> AsyncIterator[WatchEvent]:
            return self._cluster.watch(
                POD, namespace=self._namespace, labels=selector or None, relist_seconds=self._relist
            )

        def note(event: WatchEvent) -> None:
            if selector not in self._pods:
                return
            _keep(self._pods[selector], event, by="uid")
            if self.pods_listed:
                self._on_pods()

        return events, note


def _watch_of(selector: str) -> str:
    return f"pods {selector}"


def _keep(objects: dict[str, Manifest], event: WatchEvent, *, by: str = "name") -> None:
    """Note an event in what is known. A list tells deletions first, so a new object of an old name stays."""
    if event.type == "Synced":
        return
    key = str(event.object["metadata"][by])
    if event.type == "Deleted":
        with contextlib.suppress(KeyError):
            if objects[key]["metadata"]["uid"] == event.object["metadata"]["uid"]:
                del objects[key]
    else:
        objects[key] = event.object
