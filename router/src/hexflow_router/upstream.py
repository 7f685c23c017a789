"""The way to an engine: one request out, the bytes of its answer back.

The seam is two small protocols; aiohttp stands behind them here, an in-process transport in the tests, and a
client of our own later. It knows no call, no policy and no retry. Every wait is guarded by a time-out of ours,
since a client library's own may not fire (aiohttp hangs on an invalid chunk size in the middle of a body).
"""

import asyncio
import io
import os
import ssl
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import aiohttp
from yarl import URL

from hexflow_router.exchange import Headers

T = TypeVar("T")

KEEP_ALIVE_SECONDS = 3.0
"""Idle connections are dropped before uvicorn's 5 s, so that a request never meets one that is being closed."""


_LARGE = 1 << 20
"""Bytes past which aiohttp is given a body as a file, which it sends in pieces."""


class UpstreamFailed(Exception):
    """Say that an engine could not be reached or its answer could not be read; ``reason`` is a CamelCase word."""

    def __init__(self, reason: str, message: str) -> None:
        """Keep why (ConnectFailed, FirstByteTimeout, IdleTimeout, BrokenAnswer) and a sentence."""
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOuts:
    """Bound the waits of a call, in the router's seconds; to connect has a bound of its own (``HttpUpstream``)."""

    first_byte_seconds: float = 120.0
    """From sending to the first byte of a stream, and the least that is granted to a whole answer of ours."""
    idle_seconds: float = 60.0
    """Between two pieces of an answer."""
    total_seconds: float = 900.0
    """From release to the last byte, waiting and every try included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Say where an instance listens and with which key; the key is never shown."""

    url: str
    """Base address without ``/v1`` and without a slash at the end."""
    api_key: str | None = None

    def __repr__(self) -> str:
        """Return the address without its key."""
        return f"Address(url={self.url!r})"


class UpstreamResponse(Protocol):
    """Hold an answer whose head has come."""

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        ...

    @property
    def headers(self) -> Headers:
        """Return the header fields, names in lower case."""
        ...

    async def read(self) -> bytes:
        """Return what has come, or wait for more; empty at the end. Raises UpstreamFailed(BrokenAnswer)."""
        ...

    def close(self) -> None:
        """Drop the connection unless the answer is complete, so that the engine stops working for it."""
        ...


class Upstream(Protocol):
    """Send requests to engines."""

    async def send(
        self, url: str, *, method: str = "POST", headers: Headers = (), body: bytes | None = None
    ) -> UpstreamResponse:
        """Send one request and return once the head of the answer has come; redirects are not followed.

        Raises UpstreamFailed (ConnectFailed, BrokenAnswer). Cancelling drops the connection.
        """
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


async def within(seconds: float | None, work: Awaitable[T], *, reason: str, doing: str) -> T:
    """Await ``work`` for at most so many real seconds; raise UpstreamFailed(``reason``) past them."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise UpstreamFailed(reason, f"The engine was silent for {seconds:.1f} s while {doing}.") from None


class _HttpResponse:
    __slots__ = ("_response", "headers")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.headers: Headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.raw_headers
        ]

    @property
    def status(self) -> int:
        return self._response.status

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise UpstreamFailed(
                "BrokenAnswer", f"The answer broke off ({type(problem).__name__})."
            ) from problem

    def close(self) -> None:
        self._response.close()


class HttpUpstream:
    """Reach engines over HTTP/1.1 with connections kept alive between requests. Make it on a running loop."""

    def __init__(self, *, connect_seconds: float = 5.0) -> None:
        """Trust the system's authorities, until told of others."""
        self._trust: dict[str, ssl.SSLContext] = {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=connect_seconds, connect=None, sock_read=None
            ),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept-Encoding", "User-Agent", "Accept", "Content-Type"),
            trust_env=False,
        )

    def trust(self, contexts: Mapping[str, ssl.SSLContext]) -> None:
        """Use these TLS contexts for the origins named (``https://host:port``), the system's for all others."""
        self._trust = dict(contexts)

    async def send(
        self, url: str, *, method: str = "POST", headers: Headers = (), body: bytes | None = None
    ) -> UpstreamResponse:
        """Send one request; see ``Upstream.send``."""
        try:
            address = URL(url, encoded=True)
            response = await self._session.request(
                method,
                address,
                data=io.BytesIO(body) if body is not None and len(body) > _LARGE else body,
                headers=list(headers),
                allow_redirects=False,
                ssl=self._trust.get(str(address.origin()), True),
            )
        except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError, aiohttp.InvalidURL) as problem:
            raise UpstreamFailed(
                "ConnectFailed", f"The engine could not be reached ({_why(problem)})."
            ) from problem
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise UpstreamFailed(
                "BrokenAnswer", f"The engine gave no readable answer ({type(problem).__name__})."
            ) from problem
        return _HttpResponse(response)

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


def _why(problem: Exception) -> str:
    """Return the system's words for what kept a connection from being made, else the name of the problem."""
    if isinstance(problem, aiohttp.ClientConnectorError):
        number = problem.os_error.errno or 0
        words = os.strerror(number) if number > 0 else problem.os_error.strerror
        return (words or type(problem).__name__).lower()
    return type(problem).__name__
