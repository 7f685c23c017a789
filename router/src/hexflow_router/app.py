"""The tenants' port: questions, health, and the way to the OpenAI calls.

Each handler reads a request, asks the part that knows, and writes what it says. A client that goes away
takes its query with it, streamed or not; an async query lives on.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hexflow_router.answer import Answer, Question
from hexflow_router.auth import Tenant
from hexflow_router.bounds import BoundedRequests
from hexflow_router.configuration import WorkflowSetup
from hexflow_router.configwatch import ConfigurationWatch
from hexflow_router.errors import ApiError, error_response, install_error_handlers
from hexflow_router.events import encoded
from hexflow_router.health import Readiness
from hexflow_router.intake import pick, read_question, unknown
from hexflow_router.metrics import Metrics
from hexflow_router.openai import OpenAIDoor
from hexflow_router.queries import Finished, Queries, stopping
from hexflow_router.query import Query, http_status
from hexflow_router.settings import Settings

SSE_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""Ask caches and proxies to pass each event on at once."""
QUERY_HEADER = "x-hexflow-query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Hold the parts that the tenants' port needs."""

    settings: Settings
    watch: ConfigurationWatch
    queries: Queries
    metrics: Metrics
    readiness: Callable[[bool], Readiness]
    """Judge, with or without the instances."""
    policy: Callable[[], str]
    """Return the policy in force."""
    openai: OpenAIDoor


def create_app(doors: Doors) -> ASGIApp:
    """Make the application of the tenants' port: the OpenAI door as it is, all else within bounds."""
    others = BoundedRequests(_questions_app(doors), largest_body=doors.settings.max_body_bytes)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and doors.openai.serves(scope["path"]):
            if doors.queries.draining and scope["method"] == "POST":
                await error_response(stopping())(scope, receive, send)
            else:
                await doors.openai(scope, receive, send)
        elif scope["type"] == "http":
            await others(scope, receive, _noted(scope, send, doors.metrics))

    return app


def _noted(scope: Scope, send: Send, metrics: Metrics) -> Send:
    """Return a ``send`` that echoes the caller's ``x-request-id`` and counts the answer."""
    echoed = [(name, value) for name, value in scope["headers"] if name == b"x-request-id"]

    async def noted(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *echoed[:1]]
            metrics.count("hexflow_requests_total", "queries", str(message["status"]))
        await send(message)

    return noted


def _questions_app(doors: Doors) -> FastAPI:
    app = FastAPI(
        title="HexFlow router",
        description="Ask questions of databases, or call models, inside a deadline.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,  # the address would be made from the caller's Host field
    )
    install_error_handlers(app)
    _add_health(app, doors)
    _add_questions(app, doors)
    _add_queries(app, doors)
    return app


def _add_health(app: FastAPI, doors: Doors) -> None:
    @app.get("/healthz", summary="Say whether the process is alive")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", summary="Say whether a question asked now could be answered")
    async def readyz(exclude: Literal["instances"] | None = None) -> JSONResponse:
        state = doors.readiness(exclude is None)
        configuration = state.details["configuration"]
        content = {
            "ready": state.ready,
            "reason": state.reason,
            "instances": state.details["instances"],
            "configurationCurrent": configuration["current"],
        }
        return JSONResponse(content, status_code=200 if state.ready else 503)


def _add_questions(app: FastAPI, doors: Doors) -> None:
    @app.get("/v1/workflows", summary="List the workflows that the caller may use")
    async def workflows(request: Request) -> dict[str, Any]:
        listed = []
        for setup in doors.watch.current.workflows.values():
            try:
                tenant = _admit(doors, request, setup.name)
            except ApiError:
                continue
            spec = setup.workflow.spec
            listed.append(
                {
                    "name": setup.name,
                    "databases": list(setup.databases),
                    "tenant": tenant.name or None,
                    "deadlineSeconds": spec.deadline_seconds(tenant.name or None),
                    "onDeadline": spec.slo.on_deadline,
                    "stages": [
                        {"name": stage.stage.name, "kind": stage.stage.kind} for stage in setup.stages
                    ],
                    "policy": doors.policy(),
                }
            )
        return {"workflows": listed}

    @app.post(
        "/v1/workflows/{name}/queries",
        summary="Ask a question",
        description=(
            "Answers when the query has ended; with `Prefer: respond-async` at once (202) with its address;"
            " with `stream: true` with server-sent events, the last of which holds the answer."
        ),
        response_model=Answer,
        responses={202: {"model": Answer}},
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": Question.model_json_schema(by_alias=True)}},
            }
        },
    )
    async def ask(name: str, request: Request, prefer: Annotated[str | None, Header()] = None) -> Response:
        setup = _workflow(doors, request, name)
        tenant = _admit(doors, request, name)
        question = await _question(doors, request)
        database = pick(question.database, setup.databases, what="database", param="database")
        _refuse_without_pools(doors, setup)
        asynchronous = "respond-async" in (prefer or "").lower()
        query = await doors.queries.ask(
            workflow=setup,
            question=question,
            database=database,
            tenant=tenant,
            policy=doors.policy(),
            journaled=asynchronous,
            trace_headers=_trace(request),
        )
        if asynchronous:
            return _accepted(query)
        if question.stream:
            return _EventsResponse(
                encoded(query.events), headers=_headers(query.query_id), on_close=lambda: _gone(doors, query)
            )
        return await _answer_or_gone(doors, query, request)


def _add_queries(app: FastAPI, doors: Doors) -> None:
    @app.get("/v1/queries/{query_id}", summary="Read a query", response_model=Answer)
    async def read(query_id: str, request: Request) -> Response:
        found = await _find(doors, request, query_id)
        if isinstance(found, Finished):
            return _json(found.answer, headers=_headers(query_id))
        return _json(_body(found), headers=_headers(query_id))

    @app.delete("/v1/queries/{query_id}", summary="Cancel a query", response_model=Answer)
    async def cancel(query_id: str, request: Request) -> Response:
        found = await _find(doors, request, query_id)
        if isinstance(found, Finished):
            return _json(found.answer, headers=_headers(query_id))
        doors.queries.cancel(found, reason="Cancelled", message="The query was cancelled by its asker.")
        return _json(_body(found), headers=_headers(query_id))

    @app.get(
        "/v1/queries/{query_id}/events",
        summary="Follow a query",
        description="Server-sent events from the first, or from after `Last-Event-ID`.",
    )
    async def events(
        query_id: str, request: Request, last_event_id: Annotated[str | None, Header()] = None
    ) -> Response:
        found = await _find(doors, request, query_id)
        after = int(last_event_id[:12]) if last_event_id and last_event_id.isdecimal() else 0
        if isinstance(found, Finished):
            return _EventsResponse(_finished_events(found), headers=_headers(query_id))
        return _EventsResponse(encoded(found.events, after=min(after, 2**31)), headers=_headers(query_id))


class _EventsResponse(StreamingResponse):
    """Send server-sent events and call ``on_close`` once, however the sending ends."""

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[bytes],
        *,
        headers: dict[str, str],
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(events, headers=headers | SSE_HEADERS)
        self._events = events
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_close()
            await self._events.aclose()


async def _finished_events(finished: Finished) -> AsyncGenerator[bytes]:
    yield b"id: 1\nevent: query.finished\ndata: " + finished.answer + b"\n\n"


async def _answer_or_gone(doors: Doors, query: Query, request: Request) -> Response:
    gone = asyncio.ensure_future(_disconnected(request))
    ended = asyncio.ensure_future(query.ended.wait())
    try:
        await asyncio.wait((gone, ended), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        ended.cancel()
        _gone(doors, query)
    ending = query.ending
    assert ending is not None  # noqa: S101 - _gone has ended it if nothing else had
    return _json(
        query.encoded, status=http_status(ending.status, ending.reason), headers=_headers(query.query_id)
    )


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _gone(doors: Doors, query: Query) -> None:
    if query.ending is None:
        doors.metrics.count("hexflow_client_gone_total", "queries")
        doors.queries.cancel(query, reason="ClientGone", message="The client went away before the answer.")


def _workflow(doors: Doors, request: Request, name: str) -> WorkflowSetup:
    workflows = doors.watch.current.workflows
    setup = workflows.get(name)
    if setup is not None:
        return setup
    raise unknown(
        name,
        [other for other in workflows if _admitted(doors, request, other)],
        what="workflow",
        param="name",
    )


def _admit(doors: Doors, request: Request, workflow: str) -> Tenant:
    return doors.watch.current.doorkeeper.admit(
        authorization=request.headers.get("authorization"),
        workflow=workflow,
    )


def _admitted(doors: Doors, request: Request, workflow: str) -> bool:
    try:
        _admit(doors, request, workflow)
    except ApiError:
        return False
    return True


async def _question(doors: Doors, request: Request) -> Question:
    return read_question(await request.body(), max_chars=doors.settings.max_question_chars)


def _refuse_without_pools(doors: Doors, setup: WorkflowSetup) -> None:
    for stage in setup.stages:
        if not stage.pools:
            raise ApiError(
                f"No pool can serve the stage {stage.stage.name!r} of the workflow {setup.name!r}:"
                f" add a GPUPool with the model {stage.model!r}.",
                status=503,
                code="no_instance",
            )


async def _find(doors: Doors, request: Request, query_id: str) -> Query | Finished:
    found: Query | Finished | None = doors.queries.get(query_id) or await doors.queries.finished(query_id)
    if found is not None:
        workflow = found.workflow if isinstance(found, Finished) else found.workflow.name
        owner = found.tenant if isinstance(found, Finished) else found.tenant.name
        if _admit(doors, request, workflow).name == owner:
            return found
    raise ApiError(
        "There is no such query: it is unknown, forgotten, or another tenant's.",
        status=404,
        code="query_not_found",
    )


def _accepted(query: Query) -> Response:
    address = f"/v1/queries/{query.query_id}"
    headers = _headers(query.query_id) | {"location": address, "preference-applied": "respond-async"}
    return _json(_body(query), status=HTTPStatus.ACCEPTED, headers=headers)


def _body(query: Query) -> bytes:
    return query.encoded or query.answer().encode()


def _json(body: bytes, *, headers: dict[str, str], status: int = 200) -> Response:
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def _headers(query_id: str) -> dict[str, str]:
    return {QUERY_HEADER: query_id}


def _trace(request: Request) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value)
        for name in ("traceparent", "tracestate")
        if (value := request.headers.get(name)) is not None
    )
