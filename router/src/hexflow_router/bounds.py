"""Bounds on what a client may send: the size of its header and of its body.

httptools takes a header of any size, so the server's protocol counts the bytes itself and refuses before they
are kept; the body is bounded where it is read.
"""

import asyncio
import contextlib
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hexflow_router.errors import ApiError, error_body

LARGEST_HEADER = 64 << 10
"""Bytes of request line and header fields together."""
LARGEST_BODY = 4 << 20
"""Bytes of a body."""
LARGEST_REFUSED_BODY = 64 << 20
"""Bytes of a body that is too large that are still received, so that its sender gets to read why."""
REFUSED_SECONDS = 10.0
"""Real seconds that its sender has for that."""


LINGER_SECONDS = 1.0
"""Real seconds that a refused client may be silent while what it still sends is thrown away."""


class ClientGone(Exception):  # noqa: N818 - what happened
    """The client left before its request was whole."""


def header_size(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the bytes of header fields as they were sent, near enough."""
    return sum(len(name) + len(value) + 4 for name, value in headers)


def header_too_large() -> ApiError:
    """Return the refusal of a header past the bound."""
    return ApiError(
        f"The request's header is larger than {LARGEST_HEADER >> 10} KiB; put long values into the body.",
        status=431,
        code="header_too_large",
    )


def body_too_large(limit: int) -> ApiError:
    """Return the refusal of a body past the bound."""
    return ApiError(
        f"The body is larger than {limit / (1 << 20):g} MiB; send a shorter one.",
        status=413,
        code="body_too_large",
    )


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with a bound on the header (``uvicorn.Config(http=BoundedProtocol)``)."""

    _header_bytes = 0
    _in_header = True
    _refused = False

    def data_received(self, data: bytes) -> None:
        """Count while a header is being received; refuse past the bound."""
        if self._refused:
            return
        if self._in_header:
            self._header_bytes += len(data)
        super().data_received(data)
        # What came with the end of a header belongs to the body: the flag is reset by then.
        if self._in_header and self._header_bytes > LARGEST_HEADER:
            self._refuse()

    def on_message_begin(self) -> None:
        """Begin to count."""
        super().on_message_begin()
        self._in_header = True

    def on_headers_complete(self) -> None:
        """Stop counting; refuse a header that came whole and is too large."""
        self._in_header = False
        self._header_bytes = 0
        if self._refused:
            return
        if len(self.url) + header_size(self.headers) > LARGEST_HEADER:
            self._refuse()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Drop the body of a request that was refused."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Begin to count for the next request on the connection."""
        if not self._refused:
            super().on_message_complete()
        self._in_header = True
        self._header_bytes = 0

    def _refuse(self) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        body = error_body(header_too_large())
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
            b"connection: close\r\ncontent-length: " + str(len(body)).encode() + b"\r\n\r\n" + body
        )
        # Closed at once, with bytes unread, the connection would be reset and the client never see the answer.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


async def read_body(scope: Scope, receive: Receive, *, limit: int = LARGEST_BODY) -> bytes:
    """Return a request's whole body. Raises ApiError (413) past ``limit`` bytes, ClientGone if the client left."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > limit:
            await _pass_over(receive)
            raise body_too_large(limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise body_too_large(limit)
        return body
    pieces = bytearray()
    while message["type"] == "http.request":
        pieces += message.get("body", b"")
        if len(pieces) > limit:
            await _pass_over(receive)
            raise body_too_large(limit)
        if not message.get("more_body"):
            return bytes(pieces)
        message = await receive()
    raise ClientGone


async def _pass_over(receive: Receive) -> None:
    """Read on without keeping anything: a client that is still sending would get a reset and not the refusal."""
    left = LARGEST_REFUSED_BODY
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REFUSED_SECONDS):
            while left > 0:
                async with asyncio.timeout(LINGER_SECONDS):
                    message = await receive()
                if message["type"] != "http.request" or not message.get("more_body"):
                    return
                left -= len(message.get("body", b""))


class BoundedRequests:
    """Bound header and body of every request to an app that reads bodies itself (FastAPI)."""

    def __init__(self, app: ASGIApp, *, largest_body: int = LARGEST_BODY) -> None:
        """Wrap ``app``."""
        self._app = app
        self._largest_body = largest_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what is too large; pass the rest on, its body read."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            if header_size(scope["headers"]) > LARGEST_HEADER:
                raise header_too_large()
            body = await read_body(scope, receive, limit=self._largest_body)
        except ApiError as problem:
            content = error_body(problem)
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(content)).encode()),
            ]
            if problem.status == 413:
                headers.append((b"connection", b"close"))
            await send({"type": "http.response.start", "status": problem.status, "headers": headers})
            await send({"type": "http.response.body", "body": content})
            return
        except ClientGone:
            return
        given = False

        async def receive_again() -> Message:
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": body, "more_body": False}
            return await receive()

        await self._app(scope, receive_again, send)
