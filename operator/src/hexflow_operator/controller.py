"""The watches, by kopf. The only module that imports it.

Of kopf only `index`, `on.event`, `on.login` and `on.cleanup` are used, and every handler returns None: so kopf writes nothing to
anybody's objects, no annotation and no finalizer that could hang a namespace after an uninstall. Its indices stay
empty: the index handlers are used for what comes with them, that no event is told before everything of every kind was
listed. Scanning is off: no right to read CustomResourceDefinitions or namespaces is needed.
"""

import asyncio
import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import kopf

from hexflow_cluster import Connection, Kind, Manifest

LONGEST_BACKOFF_SECONDS: Final = 30.0
_REPORTS_EACH_TRY: Final = ("kopf._cogs.clients.watching", "kopf._core.reactor.observation")
"""Loggers that tell of every try of every watch while the API server is down, or a right is missing."""


class Listener(Protocol):
    """Who is told of objects: `feed.Feed`."""

    def seen(self, manifest: Manifest) -> None:
        """Note an object; all there are come before the first `told`."""

    def told(self, type_: str | None, manifest: Manifest) -> None:
        """Note an event: ADDED, MODIFIED, DELETED, or None where it comes from a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Say which objects of a kind are watched."""

    kind: Kind
    labels: str | None = None
    """A selector, applied by the API server; None: all objects."""


class _Backoffs:
    """Pauses between tries of a request, without an end: an API server that is down is waited for."""

    def __iter__(self) -> Iterator[float]:
        pause = 0.5
        while True:
            yield pause * random.uniform(0.5, 1.0)  # noqa: S311
            pause = min(LONGEST_BACKOFF_SECONDS, pause * 2)


class _OnceAMinute(logging.Filter):
    """Let one message a minute through."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.created < self._next:
            return False
        self._next = record.created + 60.0
        return True


class _NoDiffs(kopf.DiffBaseStorage):
    """Compares nothing and stores nothing; kopf's own copies every object twice for each event, for handlers we lack."""

    def build(self, *, body: kopf.Body, extra_fields: Any = None) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        return None


class _NoProgress(kopf.ProgressStorage):
    """Stores nothing: no handler of ours has progress to keep on an object."""

    def fetch(self, *, key: Any, body: kopf.Body) -> None:
        return None

    def store(self, *, key: Any, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        return None

    def purge(self, *, key: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        return None

    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        return None

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


async def watch(
    listener: Listener,
    connection: Connection,
    watched: Sequence[Watched],
    *,
    namespaces: Sequence[str],
    stop: asyncio.Event,
) -> None:
    """Tell ``listener`` of every change until ``stop`` is set or a signal ends it (kopf takes SIGTERM and SIGINT).

    ``namespaces``: those watched; empty: all of the cluster. Raises whatever keeps a watch from going on, such as a
    CustomResourceDefinition that was deleted.
    """
    for name in _REPORTS_EACH_TRY:
        logging.getLogger(name).addFilter(_OnceAMinute())
    registry = kopf.OperatorRegistry()
    _login(registry, connection)
    _goodbye(registry)
    for each in watched:
        _handlers(registry, each, listener)
    await kopf.operator(
        registry=registry,
        settings=_settings(watched),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=list(namespaces),
        stop_flag=stop,
    )


def _login(registry: kopf.OperatorRegistry, connection: Connection) -> None:
    @kopf.on.login(registry=registry, id="login")
    async def login(**_: Any) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=connection.server, aiohttp_session=connection.session())


def _goodbye(registry: kopf.OperatorRegistry) -> None:
    """End the watches that are left when one has failed.

    Kopf leaves them to its very end, and cancels them in one go with the tasks that tell them to pause. A watch that
    asks anew at that moment takes this for a pause and goes on, and kopf waits for it for ever.
    """

    @kopf.on.cleanup(registry=registry, id="goodbye")
    async def goodbye(**_: Any) -> None:
        for task in asyncio.all_tasks():
            if task.get_name().startswith("watcher for "):
                task.cancel()


def _handlers(registry: kopf.OperatorRegistry, watched: Watched, listener: Listener) -> None:
    group, _, version = watched.kind.api_version.rpartition("/")
    kind = watched.kind.kind

    @kopf.index(group=group, version=version, kind=kind, registry=registry, id=f"seen-{kind}")
    async def seen(body: kopf.Body, **_: Any) -> None:
        listener.seen(_manifest(watched.kind, body))

    @kopf.on.event(group=group, version=version, kind=kind, registry=registry, id=f"told-{kind}")
    async def told(type: str | None, body: kopf.Body, **_: Any) -> None:
        listener.told(type, _manifest(watched.kind, body))


def _manifest(kind: Kind, body: kopf.Body) -> Manifest:
    return {**dict(body), "apiVersion": kind.api_version, "kind": kind.kind}


def _settings(watched: Sequence[Watched]) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = _NoDiffs()
    settings.persistence.progress_storage = _NoProgress()
    settings.networking.request_timeout = 60.0
    settings.networking.connect_timeout = 5.0
    settings.networking.error_backoffs = _Backoffs()
    settings.queueing.idle_timeout = 1.0  # a worker holds the last object that it saw
    settings.process.ultimate_exiting_timeout = None
    for each in watched:
        if each.labels is not None:
            group, _, version = each.kind.api_version.rpartition("/")
            settings.watching.label_selectors[group, version, each.kind.kind] = each.labels
    return settings
