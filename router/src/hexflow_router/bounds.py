"""Bounds on what a client may send, and on the time it may take: header, trailer, body, answer.

httptools takes a header or a trailer of any size and waits for ever, so the server's protocol counts bytes and
seconds itself and refuses; the body is bounded where it is read.
"""

import asyncio
import contextlib
import resource
import sys
from collections.abc import Iterable
from http import HTTPStatus

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
REQUEST_SECONDS = 60.0
"""Real seconds in which a request must be whole, header and body."""
STALLED_SECONDS = 60.0
"""Real seconds that an answer may wait for a client that does not read it."""
LONGEST_PIPELINE = 16
"""Requests that may wait on one connection for the answer before theirs."""
LINGER_SECONDS = 1.0
"""Real seconds that a refused client may be silent while what it still sends is thrown away."""


class ClientGone(Exception):
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


def too_slow(seconds: float) -> ApiError:
    """Return the refusal of a request that is not whole in time."""
    return ApiError(
        f"The request was not whole within {seconds:g} s; send it again, faster.",
        status=408,
        code="request_timeout",
    )


def too_many_connections() -> ApiError:
    """Return the refusal of a client where too many are connected."""
    return ApiError(
        "Too many clients are connected; come back in a moment.", status=503, code="too_many_connections"
    )


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with bounds on what a client may send unasked, and on the time it takes.

    A request has a bounded header and no trailer, and is whole in bounded time; who is answered reads on.
    (``uvicorn.Config(http=BoundedProtocol)``)
    """

    request_seconds = REQUEST_SECONDS
    stalled_seconds = STALLED_SECONDS
    _idle_bytes = 0
    """Bytes that came since the parser last made something of them: the header, a trailer, framing."""
    _in_header = True
    _refused = False
    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the first request its time."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections():
            self._refuse(too_many_connections())
        else:
            self._await_request()

    def most_connections(self) -> int:
        """Return how many clients may be connected: half of the files the process may open, as each may need an engine."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return sys.maxsize if files == resource.RLIM_INFINITY else files // 2

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._stop_waiting()
        self._note_reading()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what comes to nothing; refuse past the bound."""
        if self._refused:
            return
        self._await_request()
        self._idle_bytes += len(data)
        super().data_received(data)
        if self._idle_bytes > LARGEST_HEADER:
            self._refuse(header_too_large())

    def pause_writing(self) -> None:
        """Give a client that does not read its answer some time."""
        super().pause_writing()
        self._stalled = self._stalled or self.loop.call_later(self.stalled_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that it reads again."""
        self._note_reading()
        super().resume_writing()

    def on_message_begin(self) -> None:
        """Begin to count and to wait."""
        super().on_message_begin()
        self._in_header = True
        self._await_request()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the header; one of a trailer would come after whoever checks headers has looked."""
        if self._in_header:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Refuse a header that came whole and is too large, and a queue of requests without end."""
        self._idle_bytes = 0
        if self._refused:
            return
        if len(self.url) + header_size(self.headers) > LARGEST_HEADER:
            self._refuse(header_too_large())
        elif len(self.pipeline) >= LONGEST_PIPELINE:
            self._turn_away()  # it has answers to read before it could read a refusal
        else:
            self._in_header = False
            super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Note that the body goes on."""
        self._idle_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Drop the body of a request that was refused."""
        self._idle_bytes = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Begin to count for the next request on the connection."""
        if not self._refused:
            super().on_message_complete()
        self._in_header = True
        self._idle_bytes = 0
        self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the form of every other error."""
        self._refuse(ApiError(msg, status=400, code="invalid_http"))

    def _await_request(self) -> None:
        self._late = self._late or self.loop.call_later(self.request_seconds, self._out_of_time)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _note_reading(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _out_of_time(self) -> None:
        self._late = None
        if self.pipeline or (self._in_header and self._answers()):
            self._await_request()  # an answer is on its way: what comes after it has time
        elif self._in_header and not self._idle_bytes:
            self.transport.close()
        else:
            self._refuse(too_slow(self.request_seconds))

    def _refuse(self, problem: ApiError) -> None:
        if self._refused or self.transport.is_closing():
            return
        if not self._answers():
            body = error_body(problem)
            status = HTTPStatus(problem.status)
            head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\n"
            head += f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)
        self._turn_away()

    def _turn_away(self) -> None:
        self._refused = True
        self._stop_waiting()
        # Closed at once, with bytes unread, the connection would be reset and the client never see the answer.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _answers(self) -> bool:
        """Return whether an answer is on its way, into which a refusal must not be written."""
        cycle = self.cycle
        if cycle is None or self.pipeline:
            return cycle is not None
        return not cycle.response_complete if self._in_header else bool(cycle.response_started)


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
