"""Chat and plain completions of an emulated instance: from a request's body to the last byte.

Written against ASGI itself, so that a caller who goes away is noticed at once, streamed or not, and
whatever it had in the engine is freed.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from msgspec.json import encode

from hexflow_emulator import reply, tokens
from hexflow_emulator.faults import Fault
from hexflow_emulator.generation import Generation
from hexflow_emulator.instance import EmulatedInstance
from hexflow_emulator.plan import Plan, plan, room_for
from hexflow_emulator.protocol import Asked, RequestError, read, refusal
from hexflow_simulator import EngineRequest, RequestTooLargeError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


RUBBISH = {
    "html": (b"<html><body>It works!</body></html>", b"text/html"),
    "json": (b'{"id": "chatcmpl-1", "choices": [{"index": 0, "mess', b"application/json"),
    "empty": (b"", b"application/json"),
    "sse": (b'data: {"id": "chatcmpl\n\ndata: nonsense\n\n', b"text/event-stream; charset=utf-8"),
}
"""Bodies and their types that no client can read, by the fault's ``kind``."""


class ConnectionCutError(ConnectionError):
    """The emulated connection breaks here, as a fault asked for."""


@dataclass(slots=True, kw_only=True, eq=False)
class Sample:
    """One choice of an answer: what will be said, and how much of it is out."""

    index: int
    generation: Generation
    plan: Plan
    sent: int = 0
    """Characters that are out."""
    closed: bool = False

    def written(self) -> int:
        """Return how many characters are written."""
        return tokens.cut(self.plan.text, written=self.generation.written, total=self.plan.output_tokens)

    def out(self) -> str:
        """Return the text that is written and not yet sent."""
        end = max(self.written(), self.sent)
        text, self.sent = self.plan.text[self.sent : end], end
        return text


@dataclass(slots=True, kw_only=True)
class CompletionRequest:
    """One HTTP request for completions, while it is served."""

    asked: Asked
    identity: str
    arrived: float
    """When it came, in the engine's time."""
    created: int
    model: str
    fault: Fault | None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    samples: list[Sample] = field(default_factory=list)
    prompt_tokens: int = 0


class CompletionsEndpoint:
    """Serve ``/v1/chat/completions`` or ``/v1/completions`` as an ASGI application."""

    def __init__(self, instance: EmulatedInstance, *, chat: bool) -> None:
        self._instance = instance
        self._chat = chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request to its end or its caller's."""
        arrived = self._instance.runner.now()
        body = await _body(receive)
        if body is None:
            return
        gone = asyncio.ensure_future(_until_gone(receive))
        serving = asyncio.ensure_future(self._serve(scope, body, send, arrived=arrived))
        try:
            await asyncio.wait({gone, serving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, serving):
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
        if not serving.cancelled():
            serving.result()

    async def _serve(self, scope: Scope, body: bytes, send: Send, *, arrived: float) -> None:
        instance = self._instance
        instance.arrived()
        try:
            if instance.draining:
                message = "cannot schedule new requests after shutdown"
                raise refusal(message, status=500, kind="InternalServerError")
            fault = instance.faults.strike()
            if fault is not None and fault.name == "rubbish":
                await _answer(send, 200, *RUBBISH[fault.kind])
                return
            if fault is not None and fault.name in ("error", "error-rate"):
                raise refusal("an emulated fault", status=fault.status, kind="InternalServerError")
            await self._speak(self._read(scope, body, fault, arrived=arrived), send)
        except RequestError as error:
            await _answer(send, error.status, encode(error.body))

    async def _speak(self, request: CompletionRequest, send: Send) -> None:
        try:
            self._submit(request)
            await (self._stream if request.asked.stream else self._whole)(request, send)
        finally:
            for sample in request.samples:
                self._instance.runner.cancel(sample.generation)

    def _read(self, scope: Scope, body: bytes, fault: Fault | None, *, arrived: float) -> CompletionRequest:
        if _header(scope, b"content-type").partition(";")[0].strip() != "application/json":
            raise refusal(
                "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed",
                kind="Bad Request",
            )
        asked = read(body, chat=self._chat)
        names = self._instance.options.names
        if asked.model is not None and asked.model not in names:
            raise refusal(
                f"The model `{asked.model}` does not exist. Valid aliases: {', '.join(names)}.",
                param="model",
                status=404,
                kind="NotFoundError",
            )
        given = _header(scope, b"x-request-id")
        identity = ("chatcmpl-" if self._chat else "cmpl-") + (given or uuid4().hex[:16])
        return CompletionRequest(
            asked=asked,
            identity=identity,
            arrived=arrived,
            created=int(self._instance.now()),
            model=asked.model or names[0],
            fault=fault,
        )

    # Into the engine

    def _submit(self, request: CompletionRequest) -> None:
        asked, options = request.asked, self._instance.options
        planned = []
        for prompt in asked.prompts:
            prompt_tokens = prompt.tokens or tokens.count(prompt.text)
            limit = room_for(asked, prompt_tokens=prompt_tokens, context=options.context)
            request.prompt_tokens += prompt_tokens
            for sample in range(asked.samples):
                said = plan(asked, prompt, sample=sample, limit=limit, speech=self._instance.speech)
                planned.append((prompt, prompt_tokens, said))
        for index, (prompt, prompt_tokens, said) in enumerate(planned):
            block = options.engine.block_tokens
            generation = Generation(
                request=EngineRequest(
                    request_id=f"{request.identity}-{index}-{uuid4().hex[:8]}",
                    prompt_tokens=prompt_tokens,
                    output_tokens=said.output_tokens,
                    prefix=tokens.prefix_blocks(prompt.text, block_tokens=block)[: prompt_tokens // block],
                    priority=asked.priority,
                ),
                changed=request.changed,
                watched=asked.stream
                or (request.fault is not None and request.fault.name in ("cut", "abort")),
                reason=said.finish_reason,
            )
            try:
                self._instance.runner.start(generation, arrived=request.arrived)
            except RequestTooLargeError as error:
                raise refusal(str(error), param="input_tokens") from None
            request.samples.append(Sample(index=index, generation=generation, plan=said))
        self._instance.metrics.asked(samples=asked.samples, max_tokens=asked.max_tokens or options.context)

    # Out of the engine

    async def _whole(self, request: CompletionRequest, send: Send) -> None:
        while not all(sample.generation.over for sample in request.samples):
            await self._further(request)
            if self._struck(request):
                # Begun, or the server would make an answer of it: a 500.
                headers = [(b"content-type", b"application/json")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                raise ConnectionCutError
        choices = []
        for sample in request.samples:
            said, aborted = sample.plan, sample.generation.aborted
            choices.append(
                reply.whole_choice(
                    chat=self._chat,
                    index=sample.index,
                    text=said.text[: sample.written()] if aborted else said.text,
                    finish_reason="abort" if aborted else said.finish_reason,
                    stop_reason=None if aborted else said.stop_reason,
                )
            )
        common = self._head(request, stream=False)
        await _answer(send, 200, reply.body(common, choices=choices, counts=self._usage(request)))

    async def _stream(self, request: CompletionRequest, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
            }
        )
        asked, common = request.asked, self._head(request, stream=True)

        async def emit(content: bytes, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": content, "more_body": more})

        opened = not self._chat
        while not all(sample.closed for sample in request.samples):
            events = []
            if not opened and any(s.generation.written or s.generation.over for s in request.samples):
                opened = True
                for sample in request.samples:
                    choice = reply.part_choice(
                        chat=True,
                        index=sample.index,
                        text="",
                        finish_reason=None,
                        stop_reason=None,
                        opening=True,
                    )
                    events.append(
                        reply.event(common, choices=[choice], counts=self._running_usage(request, 0))
                    )
            for sample in request.samples:
                if opened and not sample.closed and (event := self._part(request, sample, common)):
                    events.append(event)
            if events:
                await emit(b"".join(events))
            if self._struck(request):
                raise ConnectionCutError
            if not all(sample.closed for sample in request.samples):
                await self._further(request)
        tail = reply.DONE
        if asked.include_usage:
            tail = reply.event(common, choices=[], counts=self._usage(request), last=True) + tail
        await emit(tail, more=False)

    def _part(self, request: CompletionRequest, sample: Sample, common: reply.Json) -> bytes | None:
        """Return the event of what is new in a sample."""
        generation = sample.generation
        before, text = sample.sent, sample.out()
        finish = None
        if generation.over:
            sample.closed = True
            finish = "abort" if generation.aborted else sample.plan.finish_reason
        elif sample.sent == before:
            return None
        stop = sample.plan.stop_reason if finish == "stop" else None
        choice = reply.part_choice(
            chat=self._chat, index=sample.index, text=text, finish_reason=finish, stop_reason=stop
        )
        counts = self._running_usage(request, generation.written)
        return reply.event(common, choices=[choice], counts=counts, last=finish is not None)

    async def _further(self, request: CompletionRequest) -> None:
        """Wait until some sample is further, or for ever where a fault has struck the call dumb."""
        fault = request.fault
        if fault is not None and fault.name == "stall" and self._written(request) >= fault.tokens:
            await asyncio.Event().wait()
        await request.changed.wait()
        request.changed.clear()
        if fault is not None and fault.name == "abort" and self._written(request) >= fault.tokens:
            for sample in request.samples:
                self._instance.runner.cancel(sample.generation)

    def _struck(self, request: CompletionRequest) -> bool:
        fault = request.fault
        return fault is not None and fault.name == "cut" and self._written(request) >= fault.tokens

    @staticmethod
    def _written(request: CompletionRequest) -> int:
        return sum(sample.generation.written for sample in request.samples)

    def _head(self, request: CompletionRequest, *, stream: bool) -> reply.Json:
        return reply.head(
            identity=request.identity,
            chat=self._chat,
            stream=stream,
            created=request.created,
            model=request.model,
        )

    def _usage(self, request: CompletionRequest) -> reply.Json:
        cached = sum(sample.generation.cached_tokens for sample in request.samples[:1])
        return reply.usage(
            prompt_tokens=request.prompt_tokens,
            output_tokens=self._written(request),
            cached_tokens=cached if self._instance.options.prompt_details else None,
        )

    def _running_usage(self, request: CompletionRequest, written: int) -> reply.Json | None:
        if not request.asked.continuous_usage:
            return None
        return reply.usage(prompt_tokens=request.prompt_tokens, output_tokens=written, cached_tokens=None)


def _header(scope: Scope, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == wanted), "")


async def _body(receive: Receive) -> bytes | None:
    """Return a request's whole body; None where its caller has gone."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(send: Send, status: int, content: bytes, kind: bytes = b"application/json") -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
