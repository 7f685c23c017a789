"""The way to engines without a network: ASGI apps in this process stand at the addresses."""

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from hexflow_router.exchange import Headers
from hexflow_router.upstream import UpstreamFailed, UpstreamResponse

Message = MutableMapping[str, Any]


class AsgiUpstream:
    """Reach ASGI apps by base address, e.g. ``{"http://a100-0": app}``. Satisfies ``Upstream``."""

    def __init__(self, apps: Mapping[str, Any]) -> None:
        self.apps = dict(apps)
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(
        self, url: str, *, method: str = "POST", headers: Headers = (), body: bytes | None = None
    ) -> UpstreamResponse:
        """Run the app for one request; return once it has begun its answer."""
        parts = urlsplit(url)
        app = self.apps.get(f"{parts.scheme}://{parts.netloc}")
        if app is None:
            raise UpstreamFailed("ConnectFailed", "Nothing stands at this address.")
        visit = _Visit(body or b"")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": parts.scheme,
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers],
            "server": (parts.hostname, parts.port or 80),
            "client": ("in-process", 0),
        }
        task = asyncio.create_task(self._run(app, scope, visit))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await visit.begun.wait()
        except BaseException:
            visit.close()
            raise
        if visit.status == 0:
            raise UpstreamFailed("BrokenAnswer", "The app ended without an answer.")
        return visit

    async def _run(self, app: Any, scope: dict[str, Any], visit: "_Visit") -> None:
        try:
            await app(scope, visit.receive, visit.accept)
        except (OSError, RuntimeError):
            visit.broken = True
        finally:
            visit.finish()

    async def close(self) -> None:
        """End what runs."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Visit:
    def __init__(self, body: bytes) -> None:
        self.status = 0
        self.headers: Headers = ()
        self.begun = asyncio.Event()
        self.broken = False
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._complete = False
        self._over = False

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def accept(self, message: Message) -> None:
        if self._gone.is_set():
            raise OSError("the client is gone")
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [
                (name.decode().lower(), value.decode()) for name, value in message.get("headers", ())
            ]
            self.begun.set()
        elif message["type"] == "http.response.body":
            if message.get("body"):
                self._pieces.put_nowait(message["body"])
            if not message.get("more_body"):
                self._complete = True
                self._pieces.put_nowait(None)

    def finish(self) -> None:
        self.begun.set()
        self._pieces.put_nowait(None)

    async def read(self) -> bytes:
        if self._over:
            return b""
        piece = await self._pieces.get()
        if piece is not None:
            return piece
        self._over = True
        if not self._complete:
            raise UpstreamFailed("BrokenAnswer", "The answer broke off.")
        return b""

    def close(self) -> None:
        self._gone.set()
        if not self._complete:
            self._pieces.put_nowait(None)
