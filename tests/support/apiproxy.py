"""Stand between a client and the API server, and misbehave as a network or a busy API server does.

It speaks TLS with the API server's own certificate, so a client sees no difference but the port. It runs in a
thread of its own: tests may block, and may be coroutines.
"""

import asyncio
import json
import re
import socket
import ssl
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakSet

import aiohttp
from aiohttp import web
from yarl import URL

from support.apiserver import ApiServer

T = TypeVar("T")
NOT_PASSED_ON = {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "host"}
"""Headers that are about one connection."""
REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
    422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer in the API server's place; the request never reaches it."""

    status: int
    message: str = "the test says so"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Such as Retry-After."""


@dataclass(frozen=True, slots=True)
class Slow:
    """Wait before the request is passed on."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """Reset the connection instead of passing the request on."""


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Pass the request on, then reset the connection: it was done, and its sender cannot know."""


Fault = Answer | Slow | Cut | LoseAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request that came by."""

    method: str
    path: str
    """With the query, as it was sent."""
    agent: str

    @property
    def watch(self) -> bool:
        """Tell whether it asks for a watch."""
        return re.search(r"[?&]watch=(1|true)\b", self.path, re.IGNORECASE) is not None


@dataclass(slots=True, kw_only=True)
class Rule:
    """A fault, the requests that meet it, and how many have."""

    fault: Fault
    method: str | None
    path: str
    watch: bool | None
    times: int | None
    hits: int = 0

    def meets(self, request: Seen) -> bool:
        """Tell whether a request meets the fault."""
        return (
            (self.times is None or self.hits < self.times)
            and self.method in (None, request.method)
            and self.watch in (None, request.watch)
            and re.search(self.path, request.path) is not None
        )


@dataclass(slots=True, eq=False)
class _Flight:
    """A request that is not answered yet, or a watch."""

    seen: Seen
    request: web.BaseRequest
    response: web.StreamResponse | None = None


class ApiProxy:
    """Pass requests on to an API server; `url` is where. Use `with`."""

    def __init__(self, api_server: ApiServer) -> None:
        self._upstream = api_server.url
        self._trust = api_server.trust()
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(api_server.ca, api_server.certificates / "apiserver.key")
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._held.bind(("127.0.0.1", 0))
        self.port: int = self._held.getsockname()[1]
        self.url = f"https://127.0.0.1:{self.port}"
        self.seen: list[Seen] = []
        """All requests that came by, also those that met a fault."""
        self._rules: list[Rule] = []
        self._live: set[_Flight] = set()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="api proxy", daemon=True)

    def __enter__(self) -> "ApiProxy":
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(self, *reason: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._held.close()

    def fault(
        self,
        fault: Fault,
        *,
        method: str | None = None,
        path: str = "",
        watch: bool | None = None,
        times: int | None = None,
    ) -> Rule:
        """Let requests meet a fault: of one method, whose path and query a regular expression finds, so often.

        The first rule that a request meets decides. Return the rule, which counts.
        """
        rule = Rule(fault=fault, method=method, path=path, watch=watch, times=times)
        self._rules.append(rule)
        return rule

    def well(self) -> None:
        """Forget all faults, pass everything on, accept connections."""
        self._rules.clear()
        self._do(self._thaw())
        self._do(self._accept())

    def refuse(self) -> None:
        """Break every connection and refuse new ones, as when nobody listens, until `well`."""
        self._do(self._refuse())

    def cut(self, *, watches: bool = False) -> int:
        """Break the connections of the requests in flight, or of the watches alone; return how many."""
        return self._do(self._cut(watches))

    def expire(self) -> int:
        """Tell every watch in flight that its version is too old (410 Gone, in the stream); return how many."""
        return self._do(self._expire())

    def freeze(self) -> None:
        """Let connections stay open with nothing passing in either direction, until `well`."""
        self._do(self._freeze())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self) -> None:
        self._passing = asyncio.Event()
        self._passing.set()
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=self._trust, limit=0, force_close=True, socket_factory=self._upstream_socket
            ),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
        )
        self._server = web.Server(
            self._handle, handler_cancellation=True, auto_decompress=False, access_log=None
        )
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0)
        await self._runner.setup()
        self._site: web.TCPSite | None = None
        await self._accept()

    async def _close(self) -> None:
        await self._refuse()
        await self._runner.cleanup()
        await self._client.close()
        async with asyncio.timeout(10):  # a closing TLS connection outlives its session for a moment
            while any(each.fileno() != -1 for each in self._sockets):
                await asyncio.sleep(0.005)
        # Whoever was in the middle of a TLS handshake has become a connection since.
        await asyncio.sleep(0.1)
        await self._server.shutdown(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _upstream_socket(self, address: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        return made

    async def _accept(self) -> None:
        if self._site is None:
            self._site = web.TCPSite(
                self._runner, "127.0.0.1", self.port, ssl_context=self._tls, reuse_port=True
            )
            await self._site.start()

    async def _refuse(self) -> None:
        if self._site is not None:
            site, self._site = self._site, None
            await site.stop()
        for connection in self._runner.server.connections if self._runner.server else ():
            if connection.transport is not None:
                connection.transport.abort()

    async def _cut(self, watches: bool) -> int:
        chosen = [flight for flight in self._live if flight.seen.watch or not watches]
        for flight in chosen:
            _abort(flight.request)
        return len(chosen)

    async def _expire(self) -> int:
        message = "too old resource version: 1 (2)"
        event = json.dumps({"type": "ERROR", "object": _status(410, message)}) + "\n"
        count = 0
        for flight in tuple(self._live):
            if flight.seen.watch and flight.response is not None:
                await flight.response.write(event.encode())
                count += 1
        return count

    async def _freeze(self) -> None:
        self._passing.clear()

    async def _thaw(self) -> None:
        self._passing.set()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        seen = Seen(method=request.method, path=request.raw_path, agent=request.headers.get("User-Agent", ""))
        self.seen.append(seen)
        flight = _Flight(seen, request)
        self._live.add(flight)
        try:
            rule = next((rule for rule in self._rules if rule.meets(seen)), None)
            if rule is not None:
                rule.hits += 1
            match rule and rule.fault:
                case Answer(status, message, headers):
                    return web.json_response(_status(status, message), status=status, headers=headers)
                case Cut():
                    return _broken(request)
                case Slow(seconds):
                    await asyncio.sleep(seconds)
                case _:
                    pass
            return await self._pass_on(flight, lose=rule is not None and rule.fault == LoseAnswer())
        finally:
            self._live.discard(flight)

    async def _pass_on(self, flight: _Flight, *, lose: bool) -> web.StreamResponse:
        request = flight.request
        body = await request.read()
        await self._passing.wait()
        try:
            async with self._client.request(
                request.method,
                URL(self._upstream + request.raw_path, encoded=True),
                headers=[(k, v) for k, v in request.headers.items() if k.lower() not in NOT_PASSED_ON],
                data=body or None,
                allow_redirects=False,
            ) as answer:
                if lose:
                    await answer.read()
                    return _broken(request)
                response = web.StreamResponse(
                    status=answer.status,
                    headers=[(k, v) for k, v in answer.headers.items() if k.lower() not in NOT_PASSED_ON],
                )
                await response.prepare(request)
                flight.response = response
                async for piece in answer.content.iter_any():
                    await self._passing.wait()
                    await response.write(piece)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, ConnectionError):  # one of the two sides has gone
            return _broken(request)


def _broken(request: web.BaseRequest) -> web.StreamResponse:
    _abort(request)
    return web.Response()  # which nobody gets


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


def _status(status: int, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": REASONS.get(status, ""),
        "code": status,
    }
