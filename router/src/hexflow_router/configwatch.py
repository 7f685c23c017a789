"""The configuration in force, kept up to date with where it comes from.

A change that cannot be read leaves the last good configuration in force and says so (a metric, ``/readyz``).
"""

import asyncio
import logging
from collections.abc import Callable

from hexflow_api import ResourceError
from hexflow_router.configuration import Configuration
from hexflow_router.filewatch import looks
from hexflow_router.sources import Source

_log = logging.getLogger("hexflow.router.configuration")

Listener = Callable[[Configuration], None]


class ConfigurationWatch:
    """Keep the configuration in force up to date with its source."""

    def __init__(self, source: Source) -> None:
        """Watch nothing yet; ``load`` reads for the first time, ``run`` watches."""
        self._source = source
        self._listeners: list[Listener] = []
        self._signature: object = None
        self._reloading = asyncio.Lock()
        self._nudged = asyncio.Event()
        self.on_refused: Callable[[], None] = lambda: None
        """Called when what was changed cannot be used."""
        self.current = Configuration()
        self.read = False
        """Whether there was ever a configuration that could be used."""
        self.error: str | None = None
        """Why the resources as they are now are not in force; None while they are."""
        self.reloads = 0

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener`` with each new configuration, and with the one in force now."""
        self._listeners.append(listener)
        listener(self.current)

    async def load(self) -> None:
        """Read for the first time. Raises ResourceError."""
        self._signature = await asyncio.to_thread(self._source.look)
        self.apply(await asyncio.to_thread(self._source.read))

    async def reload(self) -> None:
        """Read anew if something has changed; what cannot be read is reported and changes nothing."""
        async with self._reloading:
            await self._reload()

    async def _reload(self) -> None:
        try:
            signature = await asyncio.to_thread(self._source.look)
            if signature == self._signature:
                return
            self._signature = signature
            configuration = await asyncio.to_thread(self._source.read)
        except ResourceError as problem:
            self._refuse(str(problem))
            return
        except OSError as problem:
            self._signature = None  # nothing is known of the files: the next look reads them
            self._refuse(f"they cannot be read now ({problem})")
            return
        self.error = None
        self.reloads += 1
        self.apply(configuration)

    def _refuse(self, problem: str) -> None:
        if problem != self.error:
            self.on_refused()
            _log.error("The changed resources are not used, the last good ones stay: %s", problem)
        self.error = problem

    def nudge(self) -> None:
        """Have the source looked at now."""
        self._nudged.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._on_looks())
            group.create_task(self._on_nudges())

    async def _on_looks(self) -> None:
        async for _ in looks(self._source.folders):
            await self._refresh()

    async def _on_nudges(self) -> None:
        while True:
            await self._nudged.wait()
            self._nudged.clear()
            await self._refresh()

    async def _refresh(self) -> None:
        try:
            await self.reload()
        except Exception:
            _log.exception("The changed resources could not be put in force, by a defect.")

    def apply(self, configuration: Configuration) -> None:
        """Put a configuration in force and tell whoever subscribed."""
        self.current = configuration
        self.read = True
        for problem in configuration.problems:
            _log.warning("%s", problem)
        for listener in self._listeners:
            listener(configuration)
