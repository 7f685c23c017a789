"""The OpenAI surface: calls passed through to the instance that suits them best.

A raw ASGI app, since it is the hot path. A caller's body goes on as it came, a stream is relayed event by event
as the engine sent it, an engine's refusal with its status; a client that leaves stops its call at the engine.
"""

import asyncio
import contextlib
import itertools
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from hexflow_router.auth import Limits, Tenant
from hexflow_router.body import read_head, with_model
from hexflow_router.bounds import LARGEST_BODY, ClientGone, read_body
from hexflow_router.catalogue import Catalogue
from hexflow_router.description import Offer, describe
from hexflow_router.driver import Driver
from hexflow_router.errors import ApiError, error_body, error_headers, internal_error
from hexflow_router.exchange import Exchange, Headers, UpstreamRequest
from hexflow_router.hints import read_hints, split_alias
from hexflow_router.known import KnownQueries
from hexflow_scheduler import Instance

_log = logging.getLogger("hexflow.router.openai")

CALLS = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/embeddings"})
MODELS = "/v1/models"
MOST_OUTSTANDING = 10_000
"""Calls released and not ended, past which further ones are refused."""


class OpenAIDoor:
    """Serve ``/v1/chat/completions``, ``/v1/completions``, ``/v1/embeddings`` and ``/v1/models``."""

    def __init__(
        self,
        driver: Driver,
        *,
        catalogue: Callable[[], Catalogue],
        limits: Limits | None = None,
        largest_body: int = LARGEST_BODY,
        most_outstanding: int = MOST_OUTSTANDING,
    ) -> None:
        """Ask ``catalogue`` at every request, so that a changed configuration is in force at once."""
        self._driver = driver
        self._catalogue = catalogue
        self._limits = limits or Limits()
        self._largest_body = largest_body
        self._most_outstanding = most_outstanding
        self._queries = KnownQueries()
        self._ids = itertools.count(1)
        # The catalogue is kept beside what was made of it, so that no other can have its identity.
        self._offers: tuple[tuple[int, int], Mapping[str, Offer], Catalogue | None] = ((0, -1), {}, None)
        self._prefix = uuid.uuid4().hex[:8]

    @staticmethod
    def serves(path: str) -> bool:
        """Return whether a path belongs to this door."""
        return path in CALLS or path == MODELS or path.startswith(MODELS + "/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        visit = _Visit(send, request_id=headers.get("x-request-id"))
        try:
            if scope["path"] in CALLS:
                _method(scope, "POST")
                await self._call(visit, scope, receive, headers)
            else:
                _method(scope, "GET")
                await self._models(visit, scope["path"], headers)
        except ApiError as problem:
            await visit.refuse(problem)
        except ClientGone:
            visit.status = 499
        except Exception:
            if visit.begun:
                raise  # the server breaks off what was begun, and logs why
            _log.exception("A call failed by a defect.")
            await visit.refuse(internal_error())
        self._driver.metrics.count("hexflow_requests_total", "openai", str(visit.status))

    async def _models(self, visit: "_Visit", path: str, headers: dict[str, str]) -> None:
        catalogue = self._catalogue()
        catalogue.doorkeeper.admit(authorization=_authorization(headers))
        offered = self._offered(catalogue)
        if path == MODELS:
            await visit.answer(200, {"object": "list", "data": [_card(name) for name in sorted(offered)]})
            return
        name = path.removeprefix(MODELS + "/")
        if name not in offered:
            raise _no_model(name, offered)
        await visit.answer(200, _card(name))

    def _offered(self, catalogue: Catalogue) -> Mapping[str, Offer]:
        key = (id(catalogue), self._driver.fleet_version)
        if self._offers[0] != key:
            self._offers = (key, _offers(catalogue, self._driver.instances()), catalogue)
        return self._offers[1]

    async def _call(self, visit: "_Visit", scope: Scope, receive: Receive, headers: dict[str, str]) -> None:
        catalogue = self._catalogue()
        authorization = _authorization(headers)
        catalogue.doorkeeper.admit(authorization=authorization)
        body = await read_body(scope, receive, limit=self._largest_body)
        head = read_head(body)
        if not isinstance(head.model, str) or not head.model:
            raise ApiError(
                "The body must name a `model`; GET /v1/models lists them.",
                status=400,
                code="missing_model",
                param="model",
            )
        offered = self._offered(catalogue)
        model, alias_stage = (head.model, None) if head.model in offered else split_alias(head.model)
        if model not in offered:
            raise _no_model(head.model, offered)
        hints = read_hints(headers, head.metadata, alias_stage=alias_stage)
        # A name that nobody knows must not rid a tenant of its own workflow's terms.
        workflow = hints.workflow if hints.workflow in catalogue.workflows else None
        tenant = catalogue.doorkeeper.admit(authorization=authorization, workflow=workflow)
        if self._driver.outstanding >= self._most_outstanding:
            raise ApiError(
                "Too many calls wait; ask again later.",
                status=429,
                code="queue_full",
                reason="QueueFull",
                retry_after=2.0,
            )
        now = self._driver.clock()
        arrival = self._queries.arrival(tenant, hints.query, now) if hints.query else now
        call = describe(
            call_id=f"call-{self._prefix}-{next(self._ids)}",
            model=model,
            head=head,
            hints=hints,
            tenant=tenant,
            terms=catalogue.workflows.get(workflow or tenant.workflow),
            offer=offered[model],
            now=now,
            arrival=arrival,
        )
        request = UpstreamRequest(
            call=call,
            path=scope["path"],
            headers=_ascii(headers),
            body=body if model == head.model else with_model(body, model),
            stream=head.wants_stream(),
        )
        with self._counted(tenant, arrival=arrival, now=now):
            await self._pass_on(visit, request, receive)

    def _counted(
        self, tenant: Tenant, *, arrival: float, now: float
    ) -> contextlib.AbstractContextManager[None]:
        # A query of several calls counts by its first; a plain call is a query of one.
        return (
            self._limits.running(tenant, now) if tenant.name and arrival == now else contextlib.nullcontext()
        )

    async def _pass_on(self, visit: "_Visit", request: UpstreamRequest, receive: Receive) -> None:
        (exchange,) = self._driver.release([request])
        relay = asyncio.ensure_future(_relay(visit, exchange))
        watch = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait((relay, watch), return_when=asyncio.FIRST_COMPLETED)
            if not relay.done():
                exchange.cancel()
                relay.cancel()
                self._driver.metrics.count("hexflow_client_gone_total", "openai")
                visit.status = 499
                await asyncio.wait((relay,))
                if not relay.cancelled():
                    relay.exception()
                return
            relay.result()
        finally:
            exchange.cancel()
            relay.cancel()
            watch.cancel()


async def _relay(visit: "_Visit", exchange: Exchange) -> None:
    reply = await exchange.reply()
    headers = [*reply.headers, ("x-hexflow-instance", reply.placement.instance_id)]
    await visit.begin(reply.status, headers)
    async with contextlib.aclosing(reply.chunks) as chunks:
        async for chunk in chunks:
            await visit.send({"type": "http.response.body", "body": chunk, "more_body": True})
    await visit.send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Visit:
    """One request's answer: begun at most once, with the caller's ``x-request-id`` echoed."""

    __slots__ = ("_request_id", "begun", "send", "status")

    def __init__(self, send: Send, *, request_id: str | None) -> None:
        self.send = send
        self.status = 500
        self.begun = False
        self._request_id = request_id

    async def begin(self, status: int, headers: Headers) -> None:
        """Send the head."""
        self.begun = True
        self.status = status
        fields = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in headers
            if name != "x-request-id" or self._request_id is None
        ]
        if self._request_id is not None:
            fields.append((b"x-request-id", self._request_id.encode("latin-1")))
        await self.send({"type": "http.response.start", "status": status, "headers": fields})

    async def answer(self, status: int, content: Any) -> None:
        """Send a JSON answer."""
        body = content if isinstance(content, bytes) else msgspec.json.encode(content)
        length = ("content-length", str(len(body)))
        await self.begin(status, [("content-type", "application/json"), length])
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, problem: ApiError) -> None:
        """Send an error, unless an answer was begun already."""
        if self.begun:
            return
        body = error_body(problem)
        headers = [*error_headers(problem).items(), ("content-length", str(len(body)))]
        if problem.status == 413:
            headers.append(("connection", "close"))
        # A call that was cancelled is one whose client is gone; nobody reads this.
        await self.begin(problem.status, headers)
        await self.send({"type": "http.response.body", "body": body})


def _offers(catalogue: Catalogue, instances: Iterable[Instance]) -> dict[str, Offer]:
    pools = {model: set(names) for model, names in catalogue.models.items()}
    contexts: dict[str, int] = {}
    for instance in instances:
        for model in instance.models:
            pools.setdefault(model, set()).add(instance.pool)
            contexts[model] = max(contexts.get(model, 0), instance.max_context or 0)
    return {
        model: Offer(pools=frozenset(names), max_context=contexts.get(model, 0))
        for model, names in pools.items()
    }


def _method(scope: Scope, method: str) -> None:
    if scope["method"] != method and not (method == "GET" and scope["method"] == "HEAD"):
        raise ApiError(f"This path takes {method}.", status=405, code="method_not_allowed")


def _authorization(headers: dict[str, str]) -> str | None:
    key = headers.get("x-api-key") or headers.get("api-key")
    return headers.get("authorization") or (f"Bearer {key}" if key else None)


def _ascii(headers: dict[str, str]) -> Headers:
    return [(name, value) for name, value in headers.items() if name.isascii() and value.isascii()]


def _card(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "hexflow"}


def _no_model(name: str, offered: Mapping[str, Offer]) -> ApiError:
    there = ", ".join(sorted(offered)[:10]) or "none"
    return ApiError(
        f"The model `{name[:128]}` does not exist; there is: {there}.",
        status=404,
        code="model_not_found",
        reason="ModelNotFound",
        param="model",
    )
