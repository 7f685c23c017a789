"""What makes a router one of a cluster: its resources, its instances and its parameters come from the namespace.

Imported in a cluster only: on a laptop there need be no Kubernetes client.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from hexflow_cluster import Access, Cluster, ClusterError, Manifest, connect
from hexflow_router.configuration import Configuration
from hexflow_router.configwatch import ConfigurationWatch
from hexflow_router.discovery import Listed
from hexflow_router.namespace import NamespaceWatch
from hexflow_router.parameters import ParameterBook
from hexflow_router.pods import listed_pods
from hexflow_router.settings import Settings, SettingsError
from hexflow_router.sources import ConfigMapSource


class ClusterSide:
    """Join the watch over a namespace to the parts that live on what it sees."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        """Take settings that name a ConfigMap (`Settings` sees to the rest)."""
        assert settings.config_map and settings.namespace and settings.secrets_dir  # noqa: S101, PT018
        self._source = ConfigMapSource(settings.config_map, settings.secrets_dir)
        self.watch = ConfigurationWatch(self._source)
        self.book = ParameterBook()
        self.on_pods: Callable[[Sequence[Listed]], None] = lambda _: None
        """Called with all instances when a pod has changed."""
        self.on_tuned: Callable[[], None] = lambda: None
        """Called when what was tuned has changed."""
        self._policies: Mapping[str, Manifest] = {}
        self._namespace = NamespaceWatch(
            cluster,
            settings.namespace,
            config_map=settings.config_map,
            on_config_map=self._config_map_changed,
            on_pods=lambda: self.on_pods(self._listed(self.watch.current)),
            on_policies=self._policies_changed,
        )

    @property
    def listed(self) -> bool:
        """Whether the pods of every pool were listed once, or it is known that they cannot be."""
        return self._namespace.pods_listed

    @property
    def troubles(self) -> tuple[str, ...]:
        """What could never be listed, and why, in sentences."""
        return tuple(f"{what} cannot be listed: {why}" for what, why in self._namespace.troubles.items())

    def ages(self) -> dict[str, float]:
        """Return by what is watched how many seconds ago it was listed."""
        return self._namespace.ages(asyncio.get_running_loop().time())

    def configure(self, configuration: Configuration) -> tuple[Listed, ...]:
        """Watch what a configuration asks for; return the instances that its pools have as far as is known."""
        self._namespace.select({pool.pods.labels for pool in configuration.fleet.pools})
        self._take(configuration)
        return self._listed(configuration)

    async def begin(self) -> None:
        """Begin with nothing: an API server that is away is waited for."""

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._namespace.run()

    def _listed(self, configuration: Configuration) -> tuple[Listed, ...]:
        return listed_pods(configuration.fleet.pools, self._namespace.pods)

    def _config_map_changed(self, config_map: Manifest | None) -> None:
        self._source.tell(config_map)
        self.watch.nudge()

    def _policies_changed(self, policies: Mapping[str, Manifest]) -> None:
        self._policies = policies
        self._take(self.watch.current)
        self.on_tuned()

    def _take(self, configuration: Configuration) -> None:
        self.book.take((setup.workflow for setup in configuration.workflows.values()), self._policies)


async def open_cluster(settings: Settings) -> tuple[Cluster, Callable[[], Coroutine[Any, Any, None]]]:
    """Return the way to the API server, by the pod's ServiceAccount or a kubeconfig, and what closes it.

    Nothing is sent yet. Raises SettingsError where the credentials cannot be read.
    """
    try:
        connection = await connect(Access(kubeconfig=settings.kubeconfig, user_agent="hexflow-router"))
    except ClusterError as problem:
        raise SettingsError(f"{problem}. Outside a cluster give --kubeconfig") from None
    return Cluster(connection, field_manager="hexflow-router"), connection.close
