"""The API server as the rest of HexFlow sees it: get, list, watch, apply, delete, by plain manifests.

Everything has a time-out, what may be tried again is, and writes pass a token bucket and whoever has to allow them
first (a leader that is one no longer must not write).
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final

from hexflow_cluster.bucket import TokenBucket
from hexflow_cluster.connection import APPLY, Connection, Query, Request, pairs
from hexflow_cluster.errors import Gone, KindUnknown, NotFound, Unavailable
from hexflow_cluster.kind import Kind, Manifest, Resource, kind_of
from hexflow_cluster.retry import Retries
from hexflow_cluster.watch import Listing, WatchEvent, follow

_log = logging.getLogger("hexflow.cluster")

Guard = Callable[[], Awaitable[None]]
"""Asked before each try of a write; raises where it may not be made."""

PAGE: Final = 500
"""Objects that a list asks for at a time."""
STREAM_SECONDS: Final = 290
"""After which the API server ends a watch in order; it is then taken up where it was."""
SILENCE_SECONDS: Final = 90.0
"""Bookmarks come about once a minute; a watch that says nothing for longer is dead."""
NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
DISCOVERY_SECONDS: Final = 10.0
"""A kind that was not there is looked for again at most so often."""


async def _allow() -> None:
    return None


class Cluster:
    """Read and write the objects of one cluster."""

    def __init__(
        self,
        connection: Connection,
        *,
        field_manager: str = "hexflow",
        writes: TokenBucket | None = None,
        guard: Guard = _allow,
        retries: Retries | None = None,
        read_seconds: float = 30.0,
        write_seconds: float = 10.0,
    ) -> None:
        """``read_seconds`` and ``write_seconds`` are for one try, from connecting to the end of the answer."""
        self._connection = connection
        self._field_manager = field_manager
        self._writes = writes or TokenBucket(rate=100, burst=200)
        self._guard = guard
        self._retries = retries or Retries()
        self._read_seconds, self._write_seconds = read_seconds, write_seconds
        self._groups: dict[str, tuple[float, dict[str, Resource]]] = {}
        self._discovering = asyncio.Lock()

    # reading

    async def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> Manifest:
        """Return one object. Raises NotFound."""
        resource = await self._resource(kind)
        return await self._read(resource.path(namespace=namespace, name=name))

    async def find(self, kind: Kind, name: str, *, namespace: str | None = None) -> Manifest | None:
        """Return one object, or None where there is none."""
        try:
            return await self.get(kind, name, namespace=namespace)
        except NotFound:
            return None

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        names_only: bool = False,
    ) -> Listing:
        """Return all objects of a kind in a namespace (None: everywhere), chosen by selectors in Kubernetes' notation.

        ``names_only``: of each object only its metadata, for comparing uids and versions cheaply.
        """
        path = (await self._resource(kind)).path(namespace=namespace)
        query = {"labelSelector": labels, "fieldSelector": fields}
        accept = NAMES_ONLY if names_only else "application/json"
        try:
            return await self._pages(kind, path, {**query, "limit": PAGE}, accept)
        except Gone:  # the list changed too much while its pages were read: all at once
            return await self._pages(kind, path, query, accept)

    def watch(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        relist_seconds: float = 300.0,
    ) -> AsyncIterator[WatchEvent]:
        """Yield every change of such objects for ever, beginning with all there are (`watch.follow`)."""

        async def list_objects() -> Listing:
            return await self.list(kind, namespace=namespace, labels=labels, fields=fields)

        @asynccontextmanager
        async def stream(version: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
            query: Query = {
                "watch": True,
                "allowWatchBookmarks": True,
                "timeoutSeconds": STREAM_SECONDS,
                "resourceVersion": version,
                "labelSelector": labels,
                "fieldSelector": fields,
            }
            path = (await self._resource(kind)).path(namespace=namespace)
            async with self._connection.lines(
                path, query=pairs(query), silence_seconds=SILENCE_SECONDS
            ) as lines:
                yield _events(lines)

        return follow(list_objects=list_objects, stream=stream, relist_seconds=relist_seconds)

    # writing

    async def apply(
        self, manifest: Manifest, *, force: bool = True, dry_run: bool = False, subresource: str | None = None
    ) -> Manifest:
        """Apply the fields that the manifest holds, server-side, and return the whole object.

        ``force`` takes fields over from others; without it Conflict names who has them. A ``metadata.uid`` in the
        manifest is a precondition: Conflict where the object is another one by now.
        """
        query: Query = {
            "fieldManager": self._field_manager,
            "force": force,
            "dryRun": "All" if dry_run else None,
        }
        return await self._write("patch", manifest, query, subresource=subresource, content_type=APPLY)

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """Apply a manifest that holds a ``status`` to the status alone. Raises NotFound where the object is gone."""
        return await self.apply(manifest, subresource="status")

    async def create(self, manifest: Manifest) -> Manifest:
        """Create an object. Raises Conflict where there is one of that name."""
        return await self._write("post", manifest, {"fieldManager": self._field_manager})

    async def replace(self, manifest: Manifest) -> Manifest:
        """Replace an object by the whole of it; its ``resourceVersion`` is a precondition (Conflict)."""
        return await self._write("put", manifest, {"fieldManager": self._field_manager})

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Delete an object, in the background what it owns; one that is gone already is well.

        ``uid`` and ``resource_version`` are preconditions (Conflict).
        """
        preconditions = {
            key: value
            for key, value in (("uid", uid), ("resourceVersion", resource_version))
            if value is not None
        }
        body = {"propagationPolicy": "Background", "preconditions": preconditions}
        path = (await self._resource(kind)).path(namespace=namespace, name=name)
        try:
            await self._attempt("delete", path, {}, body, None)
        except NotFound:
            return

    # how

    async def knows(self, kind: Kind) -> bool:
        """Tell whether the API server has such a kind."""
        try:
            await self._resource(kind)
        except KindUnknown:
            return False
        return True

    async def _read(
        self, path: str, query: Query = MappingProxyType({}), accept: str = "application/json"
    ) -> Manifest:
        async for attempt in self._retries.attempting():
            with attempt:
                answer: Manifest = await self._connection.request(
                    Request(
                        method="get", path=path, query=pairs(query), accept=accept, seconds=self._read_seconds
                    )
                )
                return answer
        raise AssertionError("a loop of tries returns or raises")

    async def _write(
        self,
        method: str,
        manifest: Manifest,
        query: Query,
        *,
        subresource: str | None = None,
        content_type: str | None = None,
    ) -> Manifest:
        resource = await self._resource(kind_of(manifest))
        metadata = manifest["metadata"]
        path = resource.path(
            namespace=metadata.get("namespace"),
            name=None if method == "post" else metadata["name"],
            subresource=subresource,
        )
        return await self._attempt(method, path, query, manifest, content_type)

    async def _attempt(
        self, method: str, path: str, query: Query, body: Manifest, content_type: str | None
    ) -> Manifest:
        async for attempt in self._retries.attempting():
            with attempt:
                await self._writes.take()
                await self._guard()
                answer: Manifest = await self._connection.request(
                    Request(
                        method=method,
                        path=path,
                        query=pairs(query),
                        body=body,
                        content_type=content_type,
                        seconds=self._write_seconds,
                    )
                )
                return answer
        raise AssertionError("a loop of tries returns or raises")

    async def _pages(self, kind: Kind, path: str, query: Query, accept: str) -> Listing:
        items: list[Manifest] = []
        more: str | None = None
        while True:
            page = await self._read(path, {**query, "continue": more}, accept)
            # The items of a list do not say what they are; a list of names that has none says null.
            found = page["items"] or ()
            items += [{**item, "apiVersion": kind.api_version, "kind": kind.kind} for item in found]
            more = page["metadata"].get("continue")
            if not more:
                return Listing(items=tuple(items), resource_version=page["metadata"]["resourceVersion"])

    async def _resource(self, kind: Kind) -> Resource:
        known = self._groups.get(kind.api_version)
        if known and kind.kind in known[1]:
            return known[1][kind.kind]
        async with self._discovering:
            now = asyncio.get_running_loop().time()
            known = self._groups.get(kind.api_version)
            if known is None or (kind.kind not in known[1] and now - known[0] >= DISCOVERY_SECONDS):
                known = (now, await self._discover(kind))
                self._groups[kind.api_version] = known
        if kind.kind not in known[1]:
            raise KindUnknown(f"the API server has no kind {kind.kind} in {kind.api_version}", status=404)
        return known[1][kind.kind]

    async def _discover(self, kind: Kind) -> dict[str, Resource]:
        try:
            answer = await self._read(kind.group_path)
        except NotFound:
            return {}
        return {
            each["kind"]: Resource(
                kind=Kind(kind.api_version, each["kind"]), plural=each["name"], namespaced=each["namespaced"]
            )
            for each in answer.get("resources") or ()
            if "/" not in each["name"]
        }


async def _events(lines: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    async for line in lines:
        try:
            event = json.loads(line)
        except ValueError as error:  # cut in the middle of a line
            raise Unavailable("the watch broke off in the middle of an event") from error
        yield event
