"""A watch without an end: it goes on after cuts, lists anew where it has to, and says what it missed.

A stream alone loses what happens while it is down. So what a new list no longer holds is reported as deleted, what it
holds anew as added, and who reads the events needs no other source. Knows no HTTP; the tests give it lists and streams.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from hexflow_cluster.errors import ClusterError, Gone, error_of
from hexflow_cluster.kind import Manifest

_log = logging.getLogger("hexflow.cluster.watch")

LONGEST_PAUSE_SECONDS: Final = 30.0


class WatchEvent(NamedTuple):
    """Tell of one change, or (Synced) that everything there is has been told."""

    type: Literal["Added", "Modified", "Deleted", "Synced"]
    object: Manifest
    """The object as it is now; of a deleted one that nobody saw go, its names and uid; of Synced, nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Hold all objects there are and the point from which to watch."""

    items: tuple[Manifest, ...]
    resource_version: str


Lister = Callable[[], Awaitable[Listing]]
Stream = Callable[[str], AbstractAsyncContextManager[AsyncIterator[dict[str, Any]]]]
"""From a resource version to the raw events after it."""


async def follow(
    *,
    list_objects: Lister,
    stream: Stream,
    relist_seconds: float,
    pause_seconds: float = 0.5,
) -> AsyncIterator[WatchEvent]:
    """Yield every change, for ever.

    Raises ClusterError only if the very first list fails; later failures are logged and tried again after a growing,
    jittered pause. ``relist_seconds``: everything is listed anew at least so often, whatever the stream says.
    """
    loop = asyncio.get_running_loop()
    known: dict[str, tuple[str, Manifest]] = {}
    version: str | None = None
    failures, listed_at, first = 0, 0.0, True
    while True:
        try:
            if version is None or loop.time() - listed_at >= relist_seconds:
                listing = await list_objects()
                listed_at = loop.time()
                for event in _news(known, listing.items):
                    yield event
                version, first = listing.resource_version, False
                yield WatchEvent("Synced", {})
            async with stream(version) as raw_events:
                async for raw in raw_events:
                    failures = 0
                    version = _version(raw) or version
                    if news := _change(known, raw):
                        yield news
                    if loop.time() - listed_at >= relist_seconds:
                        break
        except Gone:
            version = None
        except ClusterError as error:
            if first:
                raise
            failures += 1
            pause = min(LONGEST_PAUSE_SECONDS, pause_seconds * 2 ** min(failures, 10))
            _log.warning("a watch was interrupted and is taken up again: %s", error)
            await asyncio.sleep(random.uniform(pause / 2, pause) + (error.retry_after or 0.0))  # noqa: S311


def _news(known: dict[str, tuple[str, Manifest]], items: tuple[Manifest, ...]) -> list[WatchEvent]:
    """Return what a list holds that was not known, and note it."""
    events, seen = [], set()
    for item in items:
        uid, version = item["metadata"]["uid"], item["metadata"]["resourceVersion"]
        seen.add(uid)
        before = known.get(uid)
        known[uid] = (version, _names(item))
        if before is None:
            events.append(WatchEvent("Added", item))
        elif before[0] != version:
            events.append(WatchEvent("Modified", item))
    gone = [WatchEvent("Deleted", known.pop(uid)[1]) for uid in [*known] if uid not in seen]
    return gone + events  # an object may have come back under its old name


def _change(known: dict[str, tuple[str, Manifest]], raw: dict[str, Any]) -> WatchEvent | None:
    kind, item = raw.get("type"), raw.get("object") or {}
    if kind == "ERROR":
        raise error_of(int(item.get("code") or 500), json.dumps(item))
    if kind not in ("ADDED", "MODIFIED", "DELETED"):
        return None
    uid, version = item["metadata"]["uid"], item["metadata"]["resourceVersion"]
    if kind == "DELETED":
        known.pop(uid, None)
        return WatchEvent("Deleted", item)
    before = known.get(uid)
    known[uid] = (version, _names(item))
    if before is not None and before[0] == version:
        return None
    return WatchEvent("Added" if before is None else "Modified", item)


def _version(raw: dict[str, Any]) -> str | None:
    if raw.get("type") == "ERROR":
        return None
    version: str | None = ((raw.get("object") or {}).get("metadata") or {}).get("resourceVersion")
    return version


def _names(item: Manifest) -> Manifest:
    metadata = item["metadata"]
    return {
        **{key: item[key] for key in ("apiVersion", "kind") if key in item},
        "metadata": {key: metadata[key] for key in ("name", "namespace", "uid", "labels") if key in metadata},
    }
