"""The admin port: metrics, what the scheduler thinks, the event log. Never for tenants.

No API key, question, statement or address of a database is shown here: the kernel never knew them.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from fastapi import FastAPI
from fastapi import Query as Parameter
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from hexflow_api.report import Report
from hexflow_router.errors import install_error_handlers
from hexflow_router.health import Readiness
from hexflow_router.query import Query
from hexflow_scheduler import Call, KernelView, Place, decode

LINES_AT_ONCE = 500
"""Lines of the event log that are read before they are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """Hold what the admin port looks at."""

    view: Callable[[], KernelView]
    readiness: Callable[[bool], Readiness]
    """Judge, with or without the instances."""
    exposition: Callable[[], bytes]
    """The metrics, as Prometheus reads them."""
    now: Callable[[], float]
    event_log: Callable[[float | None], Iterable[str]]
    """Read the event log that is kept, oldest line first, all of it or since an instant; blocking."""
    queries: Callable[[], Sequence[Query]] = tuple
    """Return the queries that run."""
    servers: Callable[[], Sequence[dict[str, Any]]] = tuple
    """Return the servers under watch: why each takes calls or does not."""
    report: Callable[[], Report] = Report
    """Say how pools and workflows do, for their statuses."""
    placements: Callable[[], Sequence[str]] = tuple
    """The newest lines of the event log, which say why each call went where it did."""


def create_admin_app(insight: Insight) -> FastAPI:
    """Make the application of the admin port."""
    app = FastAPI(title="HexFlow router, admin port", docs_url=None, redoc_url=None, redirect_slashes=False)
    install_error_handlers(app)

    @app.get("/metrics", summary="Metrics for Prometheus")
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(insight.exposition(), media_type="text/plain; version=1.0.0; charset=utf-8")

    @app.get("/debug/scheduler", summary="Queues, running calls and parameters, as the kernel sees them")
    async def scheduler() -> Response:
        state = scheduler_state(insight.view(), insight.now())
        state["queries"] = [_query(query) for query in sorted(insight.queries(), key=Query.time_left)]
        state["servers"] = list(insight.servers())
        state["placements"] = list(_placements(insight.placements()))
        return Response(msgspec.json.encode(state), media_type="application/json")

    @app.get("/healthz", summary="Say whether the process is alive")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", summary="Say whether the router is ready, with all that it complains about")
    async def readyz(exclude: Literal["instances"] | None = None) -> JSONResponse:
        state = insight.readiness(exclude is None)
        content = {"ready": state.ready, "reason": state.reason, **state.details}
        return JSONResponse(content, status_code=200 if state.ready else 503)

    @app.get("/v1/report", summary="What the router says of the resources, for their statuses")
    async def report() -> dict[str, Any]:
        return insight.report().as_answered()

    @app.get("/v1/events", summary="The event log that is kept: one JSON record a line, oldest first")
    async def events(
        since: Annotated[float | None, Parameter(allow_inf_nan=False)] = None,
    ) -> StreamingResponse:
        lines = _lines(lambda: insight.event_log(since))
        return StreamingResponse(lines, media_type="application/jsonl")

    return app


def _placements(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield why each call of late went where it did: the score of every instance, the largest won."""
    for line in lines:
        record = decode(line)
        for decision in record.decisions:
            if isinstance(decision, Place):
                yield {
                    "at": record.now,
                    "call": decision.call_id,
                    "instance": decision.instance_id,
                    "urgency": decision.urgency,
                    "predictedSeconds": decision.predicted_seconds,
                    "scores": dict(decision.scores),
                }


async def _lines(read: Callable[[], Iterable[str]]) -> AsyncGenerator[bytes]:
    lines = await asyncio.to_thread(lambda: iter(read()))
    while batch := await asyncio.to_thread(lambda: list(itertools.islice(lines, LINES_AT_ONCE))):
        yield "".join(f"{line}\n" for line in batch).encode()


def scheduler_state(view: KernelView, now: float) -> dict[str, Any]:
    """Return the kernel's view as plain data in camelCase."""
    return {
        "now": now,
        "policy": view.policy,
        "parameters": dict(view.parameters),
        "workflowParameters": {
            name: dict(parameters) for name, parameters in view.workflow_parameters.items()
        },
        "instances": [
            {
                "instance": shown.instance.instance_id,
                "pool": shown.instance.pool,
                "gpuType": shown.instance.gpu_type,
                "state": shown.instance.state,
                "models": sorted(shown.instance.models),
                "takesPriority": shown.instance.takes_priority,
                "speedScale": {"prefill": shown.speed.prefill, "decode": shown.speed.decode},
                "freeSlots": shown.free_slots,
                "freeKvTokens": shown.free_kv_tokens,
                "foreignRunning": shown.foreign_running,
                "queueSeconds": shown.queue_seconds,
                "queue": [
                    _call(waiting.call)
                    | {
                        "urgency": waiting.urgency,
                        "key": waiting.key,
                        "waitedSeconds": waiting.waited_seconds,
                        "predictedSeconds": waiting.predicted_seconds,
                        "expectedOutputTokens": waiting.output_tokens,
                    }
                    for waiting in shown.queue
                ],
                "running": [
                    _call(running.call)
                    | {
                        "sentSecondsAgo": now - running.sent,
                        "attempt": running.attempt,
                        "predictedSecondsLeft": running.predicted_finish - now,
                        "expectedOutputTokens": running.output_tokens,
                    }
                    for running in shown.running
                ],
            }
            for shown in view.instances
        ],
        "parked": [_call(call) for call in view.parked],
    }


def _query(query: Query) -> dict[str, Any]:
    """Return where a query stands and where its time went."""
    now = query.clock()
    return {
        "id": query.query_id,
        "workflow": query.workflow.name,
        "tenant": query.tenant.name,
        "secondsRunning": now - query.arrival,
        "secondsLeft": query.time_left(),
        "stages": [
            {
                "name": stage.name,
                "status": stage.status,
                "seconds": (now if stage.ended_at is None else stage.ended_at) - stage.started_at,
                "budgetSeconds": stage.budget_seconds,
                "calls": Counter(record.status for record in stage.records),
                "statements": stage.statements,
                "statementSeconds": stage.statement_seconds,
            }
            for stage in query.stages
            if stage.started_at is not None
        ],
    }


def _call(call: Call) -> dict[str, Any]:
    return {
        "id": call.call_id,
        "query": call.query_id,
        "workflow": call.workflow,
        "tenant": call.tenant,
        "stage": call.stage,
        "model": call.model,
        "promptTokens": call.prompt_tokens,
        "deadline": call.deadline,
        "budgetSeconds": call.budget_seconds,
        "round": call.round,
        "sibling": call.sibling,
    }
