"""Where a router's resources, instances and parameters come from: files on a laptop, the namespace in a cluster."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

from hexflow_router.configuration import Configuration
from hexflow_router.configwatch import ConfigurationWatch
from hexflow_router.discovery import Listed
from hexflow_router.parameters import ParameterBook
from hexflow_router.settings import Settings
from hexflow_router.sources import FileSource


class Origin(Protocol):
    """Know what there is, and tell of changes."""

    watch: ConfigurationWatch
    book: ParameterBook
    on_pods: Callable[[Sequence[Listed]], None]
    """Called with all instances when a pod has changed."""
    on_tuned: Callable[[], None]
    """Called when what was tuned has changed."""

    @property
    def listed(self) -> bool:
        """Whether the instances that there are were listed once, or it is known that they cannot be."""
        ...

    @property
    def troubles(self) -> tuple[str, ...]:
        """What cannot be seen, and why, in sentences."""
        ...

    def ages(self) -> dict[str, float]:
        """Return how many seconds ago what is watched was listed, by what it is."""
        ...

    def configure(self, configuration: Configuration) -> Sequence[Listed] | None:
        """Watch what a configuration asks for; return the instances that it has, None where somebody else says."""
        ...

    async def begin(self) -> None:
        """Read what must be there before the router starts. Raises ResourceError."""
        ...

    async def run(self) -> None:
        """Watch until cancelled."""
        ...


class Files:
    """Read resources from files; a file that discovery reads lists the instances."""

    def __init__(self, settings: Settings) -> None:
        self.watch = ConfigurationWatch(FileSource(settings.config, settings.secrets_dir))
        self.book = ParameterBook()
        self.on_pods: Callable[[Sequence[Listed]], None] = lambda _: None
        self.on_tuned: Callable[[], None] = lambda: None

    listed = True
    troubles: tuple[str, ...] = ()

    def ages(self) -> dict[str, float]:
        """Return nothing: files are looked at every few seconds."""
        return {}

    def configure(self, configuration: Configuration) -> None:
        """Do nothing."""

    async def begin(self) -> None:
        """Read the files."""
        await self.watch.load()

    async def run(self) -> None:
        """Wait: the configuration's watch is all there is."""
        await asyncio.Event().wait()


async def origin_of(settings: Settings, stack: AsyncExitStack) -> Origin:
    """Return where things come from; what it opens is closed with the stack. Raises SettingsError."""
    if settings.config_map is None:
        return Files(settings)
    # Kubernetes' client takes half a second and 30 MB, which a laptop's router can do without.
    from hexflow_router.clusterside import ClusterSide, open_cluster

    cluster, close = await open_cluster(settings)
    stack.push_async_callback(close)
    return ClusterSide(cluster, settings)
