"""Servers for tests: an ASGI app under uvicorn on a free port, and engines that misbehave byte by byte."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from hexflow_router.bounds import BoundedProtocol


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the signals are pytest's


def free_socket(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """Return a listening socket on a port of the loopback, by default a free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    return listener


@contextlib.asynccontextmanager
async def serving(
    app: Any,
    *,
    protocol: type[BoundedProtocol] = BoundedProtocol,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[str]:
    """Serve an ASGI app as the router's main does; yield its address."""
    listener = free_socket(host, port)
    config = uvicorn.Config(
        app,
        http=protocol,
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(10):
            while not server.started:
                await asyncio.sleep(0.005)
        yield f"http://{host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


Behaviour = Callable[["RawEngine", asyncio.StreamWriter, dict[str, Any]], Awaitable[None]]


@dataclass
class RawEngine:
    """An engine whose answer to a call is whatever ``behaviour`` writes to the socket."""

    behaviour: Behaviour
    model: str = "tiny"
    url: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    gone: int = 0
    """Clients that left before their answer was complete."""
    started_at: float = 1.0
    healthy: bool = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                (
                    int(line.split(":")[1])
                    for line in head.split("\r\n")
                    if line.lower().startswith("content-length:")
                ),
                0,
            )
            body = await reader.readexactly(length)
            path = head.split(" ")[1]
            if head.startswith("GET"):
                await self._get(path, writer)
            else:
                self.heads.append(head)
                self.bodies.append(body)
                self.calls.append(json.loads(body))
                work = asyncio.ensure_future(self.behaviour(self, writer, self.calls[-1]))
                left = asyncio.ensure_future(reader.read())
                await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    self.gone += 1
                    work.cancel()
                left.cancel()
                await asyncio.gather(work, left, return_exceptions=True)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            with contextlib.suppress(ConnectionError):
                writer.close()

    async def _get(self, path: str, writer: asyncio.StreamWriter) -> None:
        if not self.healthy:
            await answer(writer, b"", status="503 Service Unavailable")
        elif path == "/v1/models":
            listing = {
                "object": "list",
                "data": [{"id": self.model, "object": "model", "max_model_len": 4096}],
            }
            await answer(writer, json.dumps(listing).encode())
        elif path == "/metrics":
            page = f"vllm:num_requests_running 0\nprocess_start_time_seconds {self.started_at}\n"
            await answer(writer, page.encode(), kind="text/plain")
        else:
            await answer(writer, b"{}")


async def answer(
    writer: asyncio.StreamWriter,
    body: bytes,
    *,
    status: str = "200 OK",
    kind: str = "application/json",
    more: str = "",
) -> None:
    """Write a whole answer and close."""
    writer.write(
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
    )
    writer.write(body)
    await writer.drain()


def completion(text: str = "hello", *, finish_reason: str | None = "stop") -> bytes:
    """Return the body of a chat completion."""
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": finish_reason,
                }
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        }
    ).encode()


def event(text: str | None = None, *, finish_reason: str | None = None) -> bytes:
    """Return one event of a streamed chat completion."""
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"id": "chatcmpl-1", "choices": [choice]}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)


async def chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write one chunk of a chunked answer; an empty one ends it."""
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


@contextlib.asynccontextmanager
async def raw_engine(behaviour: Behaviour, **given: Any) -> AsyncIterator[RawEngine]:
    """Run a misbehaving engine."""
    engine = RawEngine(behaviour, **given)
    server = await asyncio.start_server(engine._serve, "127.0.0.1", 0)
    engine.url = "http://127.0.0.1:" + str(server.sockets[0].getsockname()[1])
    try:
        yield engine
    finally:
        server.close()
