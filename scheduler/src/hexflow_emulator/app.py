"""The HTTP surface of an emulated instance: vLLM's paths, and ``/emulator/faults``."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable
from uuid import uuid4

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hexflow_emulator.arguments import EmulatorOptions
from hexflow_emulator.completions import CompletionsEndpoint
from hexflow_emulator.errors import FaultError
from hexflow_emulator.faults import Fault
from hexflow_emulator.instance import EmulatedInstance, end_process
from hexflow_emulator.reply import VLLM_VERSION
from hexflow_emulator.tokens import count


class FaultsBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /emulator/faults``."""

    faults: list[str]


def emulator_app(
    options: EmulatorOptions,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    die: Callable[[], None] = end_process,
) -> ASGIApp:
    """Return one emulated instance as an ASGI application.

    ``clock`` reads real seconds since the epoch and ``sleep`` sleeps real seconds, so a test may pass
    virtual ones; ``die`` ends the process for the fault ``die-after``. Raises EmulatorError.
    """
    return instance_app(EmulatedInstance(options, clock=clock, sleep=sleep, die=die))


def instance_app(instance: EmulatedInstance) -> ASGIApp:
    """Return the HTTP surface of an instance."""

    async def health(request: Request) -> Response:
        return Response()

    async def version(request: Request) -> Response:
        return JSONResponse({"version": VLLM_VERSION})

    async def load(request: Request) -> Response:
        return JSONResponse({"server_load": 0})

    async def metrics(request: Request) -> Response:
        return Response(instance.metrics_text(), media_type="text/plain; version=1.0.0; charset=utf-8")

    async def models(request: Request) -> Response:
        return JSONResponse(
            {"object": "list", "data": [_model(instance, name) for name in instance.options.names]}
        )

    async def tokenize(request: Request) -> Response:
        body = await request.json()
        number = count(str(body.get("prompt") or body.get("messages") or ""))
        return JSONResponse(
            {"count": number, "max_model_len": instance.options.context, "tokens": list(range(number))}
        )

    async def faults(request: Request) -> Response:
        try:
            if request.method == "POST":
                body = msgspec.json.decode(await request.body(), type=FaultsBody)
                instance.set_faults([Fault.parse(text) for text in body.faults])
            elif request.method == "DELETE":
                instance.set_faults([])
        except (FaultError, msgspec.DecodeError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return JSONResponse({"faults": instance.faults.left()})

    async def http_error(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = error.headers if isinstance(error, HTTPException) else None
        detail = error.detail if isinstance(error, HTTPException) else "Internal Server Error"
        return JSONResponse({"detail": detail}, status_code=status, headers=headers)

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/ping", health, methods=["GET", "POST"]),
            Route("/version", version),
            Route("/load", load),
            Route("/metrics", metrics),
            Route("/v1/models", models),
            Route("/v1/chat/completions", CompletionsEndpoint(instance, chat=True), methods=["POST"]),
            Route("/v1/completions", CompletionsEndpoint(instance, chat=False), methods=["POST"]),
            Route("/tokenize", tokenize, methods=["POST"]),
            Route("/emulator/faults", faults, methods=["GET", "POST", "DELETE"]),
        ],
        exception_handlers={HTTPException: http_error},
    )
    guarded = _with_key(app, instance.options.api_key) if instance.options.api_key else app
    return _with_request_id(guarded) if instance.options.request_id_headers else guarded


def _model(instance: EmulatedInstance, name: str) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": int(instance.now()),
        "owned_by": "hexflow-emulator",
        "root": instance.options.model,
        "parent": None,
        "max_model_len": instance.options.context,
        "permission": [],
    }


def _with_key(app: ASGIApp, key: str) -> ASGIApp:
    """Ask for the key under ``/v1``, and nowhere else, as vLLM does."""
    expected = f"Bearer {key}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/v1"):
            given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(given, expected):
                await JSONResponse({"error": "Unauthorized"}, status_code=401)(scope, receive, send)
                return
        await app(scope, receive, send)

    return guarded


def _with_request_id(app: ASGIApp) -> ASGIApp:
    """Echo ``x-request-id``, or make one."""

    async def echoing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        given = next(
            (value for name, value in scope["headers"] if name == b"x-request-id"), uuid4().hex.encode()
        )

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), (b"x-request-id", given)]}
            await send(message)

        await app(scope, receive, send_with_id)

    return echoing
