"""An emulated instance in this process, asked through ASGI, under real or virtual time."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hexflow_emulator import EmulatorOptions, Lengths, emulator_app, parse
from hexflow_scheduler import Profile
from support import virtual_time

PROFILE = Profile(t0=0.02, t1=0.001, t2=1e-7, c1=1e-4, c2=0.0, kv_tokens=100_000, slots=4)


def some_options(
    *flags: str, profile: Profile = PROFILE, words: str = "fixed:20", **fields: Any
) -> EmulatorOptions:
    """Return options as the command line gives them, of a model that writes words without meaning."""
    values = {
        "kvTokens" if name == "kv_tokens" else name: getattr(profile, name) for name in profile.__slots__
    }
    own = [] if "--book" in flags else ["--output-tokens", words]
    arguments = ["serve", "tiny", "--profile", json.dumps(values), *own, *flags]
    return (
        parse(arguments, environment={})
        if not fields
        else EmulatorOptions(
            **{"model": "tiny", "profile": profile, "lengths": Lengths.parse(words), **fields}
        )
    )


@dataclass
class Answer:
    """What came back of a request in this process."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    """Each piece of the body with the instant at which it came."""
    complete: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The events of a stream, without the last."""
        lines = [line[6:] for line in self.body.decode().split("\n\n") if line]
        assert lines[-1] == "[DONE]"
        return [json.loads(line) for line in lines[:-1]]


class InProcess:
    """Ask an ASGI application as a client does."""

    def __init__(self, app: Any, *, clock: Callable[[], float] = virtual_time.now) -> None:
        self.app = app
        self._clock = clock

    async def ask(
        self,
        path: str,
        body: Any = None,
        *,
        method: str | None = None,
        headers: dict[str, str] | None = None,
        leaves: Awaitable[Any] | None = None,
    ) -> Answer:
        """Send a request and return its answer; the client goes away when ``leaves`` is done."""
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        answer = Answer()
        sent = False
        over = asyncio.Event()

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": raw, "more_body": False}
            await (leaves if leaves is not None else over.wait())
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                answer.pieces.append((self._clock(), message.get("body", b"")))
                answer.complete = not message.get("more_body", False)

        scope = {
            "type": "http", "method": method or ("GET" if body is None else "POST"), "path": path,
            "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in ({"content-type": "application/json"} | (headers or {})).items()],
            "asgi": {"version": "3.0"}, "http_version": "1.1", "server": ("emulator", 80), "client": ("test", 1),
        }  # fmt: skip
        await self.app(scope, receive, send)
        return answer

    async def chat(self, text: str = "hello", /, **fields: Any) -> Answer:
        """Ask for a chat completion."""
        body = {"messages": [{"role": "user", "content": text}], **fields}
        return await self.ask("/v1/chat/completions", body)

    async def metric(self, name: str) -> float:
        """Return a metric's value."""
        text = (await self.ask("/metrics")).body.decode()
        return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(f"{name}{{")))


def an_instance(*flags: str, die: Callable[[], None] | None = None, **options: Any) -> InProcess:
    """Return an emulated instance under virtual time; call it inside ``virtual_time.run``."""
    more = {} if die is None else {"die": die}
    app = emulator_app(some_options(*flags, **options), clock=virtual_time.now, sleep=asyncio.sleep, **more)
    return InProcess(app)


@asynccontextmanager
async def running(*calls: Awaitable[Answer]) -> AsyncIterator[list["asyncio.Task[Answer]"]]:
    """Run calls beside the block and cancel what is left of them."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        await asyncio.sleep(0)
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
