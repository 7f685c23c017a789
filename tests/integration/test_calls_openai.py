"""The OpenAI surface over real sockets: what goes through untouched, what is refused, and who is let go."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import openai
import pytest

from hexflow_router.auth import Doorkeeper, Tenant, fingerprint
from hexflow_router.catalogue import WorkflowTerms
from hexflow_router.driver import Driver
from hexflow_router.exchange import Exchange, UpstreamRequest
from hexflow_scheduler import Profile
from support.datapath import BODY, STREAMED, a_pool, data_path
from support.serving import (
    DONE,
    STREAM_HEAD,
    Behaviour,
    RawEngine,
    answer,
    chunk,
    completion,
    event,
    raw_engine,
    serving,
)

CHAT = "/v1/chat/completions"
Body = dict[str, Any]


def note_releases(driver: Driver, seen: list[UpstreamRequest]) -> None:
    """Keep what is released to a driver from now on."""
    release = driver.release

    def noting(requests: Sequence[UpstreamRequest]) -> list[Exchange]:
        seen.extend(requests)
        return release(requests)

    driver.release = noting  # type: ignore[method-assign]


async def well(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    if body.get("stream"):
        writer.write(STREAM_HEAD)
        for piece in (
            b": a comment\n\n",
            event("hel"),
            event("lo")[:20],
            event("lo")[20:],
            event(finish_reason="stop"),
        ):
            await chunk(writer, piece)
            await asyncio.sleep(0.01)
        await chunk(writer, DONE)
        await chunk(writer, b"")
    else:
        await answer(writer, completion(), more="x-engine: tiny\r\n")


async def silent(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    await asyncio.sleep(60)


async def stalls(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    writer.write(STREAM_HEAD)
    await chunk(writer, event("hel"))
    await asyncio.sleep(60)


def error_of(content: bytes | str | dict[str, Any]) -> dict[str, Any]:
    """Return the error object of an answer, which is OpenAI's in every case."""
    body = content if isinstance(content, dict) else json.loads(content)
    assert set(body["error"]) >= {"message", "type", "param", "code"}
    error: dict[str, Any] = body["error"]
    return error


async def post(url: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url + CHAT, data=io.BytesIO(body), headers=named) as reply,
    ):
        return (
            reply.status,
            {name.lower(): value for name, value in reply.headers.items()},
            await reply.read(),
        )


async def test_a_body_with_fields_nobody_knows_goes_through_byte_for_byte() -> None:
    body = (
        b'{ "model" : "tiny",\n "messages":[{"role":"user","content":"caf\\u00e9 \xe2\x82\xac"}],'
        b' "tools":[{"type":"function","function":{"name":"f","parameters":{}}}], "x_unknown": 1.0e+2 }'
    )
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        status, headers, content = await post(url, body, x_request_id="mine", traceparent="00-1-2-01")
        assert (status, content) == (200, completion())
        assert engine.bodies == [body]
        assert headers["x-request-id"] == "mine"
        assert headers["x-engine"] == "tiny"
        assert "traceparent: 00-1-2-01" in engine.heads[0]
        assert engine.heads[0].lower().count("content-type:") == 1
        assert "content-type: application/json" in engine.heads[0].lower()


async def test_the_callers_key_never_reaches_an_engine() -> None:
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        await post(url, BODY, authorization="Bearer secret-of-mine", cookie="a=b")
        assert "secret-of-mine" not in engine.heads[0]
        assert "cookie" not in engine.heads[0].lower()


async def test_a_stream_is_relayed_byte_for_byte() -> None:
    expected = b": a comment\n\n" + event("hel") + event("lo") + event(finish_reason="stop") + DONE
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        status, headers, content = await post(url, STREAMED)
        assert status == 200
        assert headers["content-type"].startswith("text/event-stream")
        assert content == expected


async def test_only_the_priority_is_rewritten_where_the_engine_orders_by_it() -> None:
    body = b'{"model":"tiny","priority":-999999999, "seed" : 7.0,"messages":[{"role":"user","content":"\\u00e9"}]}'
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url), policy="HexGenFlow") as path,
        serving(path.door) as url,
    ):
        assert (await post(url, body, x_hexflow_deadline_ms="5000"))[0] == 200
        sent = engine.calls[0]
        assert sent["priority"] != -999999999
        assert b'"messages":[{"role":"user","content":"\\u00e9"}]' in engine.bodies[0]
        assert b'"seed":7.0' in engine.bodies[0]


async def test_where_the_queue_is_fcfs_a_callers_priority_reaches_no_engine() -> None:
    body = b'{"model":"tiny","priority":-999999999,"messages":[{"role":"user","content":"hi"}]}'
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url), policy="RoundRobin") as path,
        serving(path.door) as url,
    ):
        assert (await post(url, body))[0] == 200
        assert "priority" not in engine.calls[0]


async def test_a_defect_is_an_openai_error_too() -> None:
    def breaks_down(requests: Sequence[UpstreamRequest]) -> list[Exchange]:
        raise RuntimeError("a defect")

    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        path.driver.release = breaks_down  # type: ignore[method-assign]
        status, _, content = await post(url, BODY)
        assert (status, error_of(content)["code"]) == (500, "internal_error")


async def test_an_alias_names_the_stage_and_a_header_wins_over_it() -> None:
    body = BODY.replace(
        b'"tiny"', b'"tiny@drafting","metadata":{"hexflow-workflow":"mine","hexflow-stage":"middle"}'
    )
    seen: list[UpstreamRequest] = []
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        note_releases(path.driver, seen)
        await post(url, body)
        await post(url, BODY.replace(b'"tiny"', b'"tiny@drafting"'))
        await post(url, body, x_hexflow_stage="first", x_hexflow_query="q1", x_hexflow_deadline_ms="9000")
        assert [request.call.stage for request in seen] == ["middle", "drafting", "first"]
        assert [request.call.workflow for request in seen] == ["mine", "", "mine"]
        assert seen[2].call.query_id == "q1"
        assert 8.5 < (seen[2].call.deadline or 0) - seen[2].call.query_arrival <= 9.0
        assert [sent["model"] for sent in engine.calls] == ["tiny", "tiny", "tiny"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"model": "tiny", "messages": [', 400, "invalid_json"),
        (b"", 400, "invalid_json"),
        (b"[1, 2]", 400, "invalid_json"),
        (b'{"model":"tiny","messages":[{"role":"user","content":"\xff\xfe"}]}', 400, "invalid_utf8"),
        (b'{"messages": []}', 400, "missing_model"),
        (b'{"model": 7, "messages": []}', 400, "missing_model"),
        (b'{"model": "gpt-17", "messages": []}', 404, "model_not_found"),
        (b'{"model":"tiny","messages":"' + b"x" * (5 << 20) + b'"}', 413, "body_too_large"),
        (b"[" * 200_000, 400, "invalid_json"),
    ],
)
async def test_bad_bodies_get_one_readable_message(body: bytes, status: int, code: str) -> None:
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        given, _, content = await post(url, body)
        error = error_of(content)
        assert (given, error["code"]) == (status, code)
        assert len(error["message"]) < 300
        assert not engine.calls


async def test_a_body_in_chunks_is_bounded_too() -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(6):
            yield b" " * (1 << 20)

    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
        aiohttp.ClientSession() as session,
        session.post(url + CHAT, data=endless()) as reply,
    ):
        assert reply.status == 413


@pytest.mark.parametrize("ended", [True, False])
async def test_a_header_of_a_megabyte_is_refused(ended: bool) -> None:
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"POST " + CHAT.encode() + b" HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * (1 << 20))
        if ended:
            writer.write(b"\r\ncontent-length: 2\r\n\r\n{}")
        content = await asyncio.wait_for(_all(reader), 5)
        assert content.startswith(b"HTTP/1.1 431 ")
        assert error_of(content.partition(b"\r\n\r\n")[2])["code"] == "header_too_large"
        writer.close()


async def _all(reader: asyncio.StreamReader) -> bytes:
    content = b""
    try:
        while piece := await reader.read(65536):
            content += piece
    except ConnectionError:
        pass
    return content


async def test_a_wrong_method_and_an_unknown_deadline_are_openai_errors() -> None:
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        async with aiohttp.ClientSession() as session, session.get(url + CHAT) as reply:
            assert reply.status == 405
            error_of(await reply.read())
        status, _, content = await post(url, BODY, x_hexflow_deadline_ms="soon")
        assert (status, error_of(content)["param"]) == (400, "x-hexflow-deadline-ms")


@pytest.mark.parametrize(("body", "behaviour"), [(BODY, silent), (STREAMED, silent), (STREAMED, stalls)])
async def test_a_client_that_leaves_frees_the_engine_within_half_a_second(
    body: bytes, behaviour: Behaviour
) -> None:
    async with (
        raw_engine(behaviour) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(
            f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
        )
        await path.until(lambda: len(engine.calls) == 1)
        if behaviour is stalls:
            await reader.readuntil(b"\n\n")
            await asyncio.sleep(0.1)
        assert path.running() == 1
        writer.transport.abort()
        await path.until(lambda: engine.gone == 1, seconds=0.5)
        assert path.running() == 0
        assert path.driver.outstanding == 0
        await path.until(lambda: path.value("hexflow_requests_total", door="openai", status="499") == 1)


async def test_clients_that_leave_in_the_middle_of_streams_do_not_open_the_breaker() -> None:
    async with (
        raw_engine(stalls) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        for number in range(8):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(STREAMED)}\r\n\r\n"
            writer.write(head.encode() + STREAMED)
            await reader.readuntil(b"hel")
            writer.transport.abort()
            await path.until(lambda: engine.gone == number + 1)  # noqa: B023 - awaited at once
        await path.until(lambda: path.driver.outstanding == 0)
        assert path.any_ready()
        assert path.value("hexflow_calls_total", pool="a100", outcome="Cancelled") == 8


async def test_a_waiting_call_of_a_client_that_left_leaves_the_queue() -> None:
    profile = Profile(t0=0.01, t1=0.0, t2=0.0, c1=0.0, c2=0.0, kv_tokens=10_000, slots=1)
    async with (
        raw_engine(silent) as engine,
        data_path(a_pool("a100", engine.url, profile=profile)) as path,
        serving(path.door) as url,
    ):
        first = asyncio.create_task(post(url, BODY))
        await path.until(lambda: len(engine.calls) == 1)
        second = asyncio.create_task(post(url, BODY))
        await path.until(lambda: path.driver.outstanding == 2)
        second.cancel()
        await path.until(lambda: path.driver.outstanding == 1)
        assert len(engine.calls) == 1
        first.cancel()
        await path.until(lambda: path.driver.outstanding == 0)


async def test_no_instance_is_503_and_a_failed_one_502_never_500() -> None:
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url), look=False) as path,
        serving(path.door) as url,
    ):
        body = BODY
        status, _, content = await post(url, body, x_hexflow_deadline_ms="200")
        assert status == 503
        assert error_of(content)["reason"] == "NoInstanceInTime"

        async def dies(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
            writer.transport.abort()

        await path.discovery.look()
        engine.behaviour = dies
        status, _, content = await post(url, body)
        assert (status, error_of(content)["reason"]) == (502, "BrokenAnswer")


async def test_too_many_waiting_calls_are_refused_with_when_to_come_back() -> None:
    async with (
        raw_engine(silent) as engine,
        data_path(a_pool("a100", engine.url), most_outstanding=1) as path,
        serving(path.door) as url,
    ):
        first = asyncio.create_task(post(url, BODY))
        await path.until(lambda: path.driver.outstanding == 1)
        status, headers, content = await post(url, BODY)
        assert (status, error_of(content)["reason"]) == (429, "QueueFull")
        assert int(headers["retry-after"]) >= 1
        first.cancel()
        await path.until(lambda: path.driver.outstanding == 0)


async def test_the_openai_client_works_and_knows_nothing_of_this() -> None:
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
        openai.AsyncOpenAI(base_url=url + "/v1", api_key="any", max_retries=0) as client,
    ):
        messages: Any = [{"role": "user", "content": "hi"}]
        whole = await client.chat.completions.create(model="tiny", messages=messages)
        assert whole.choices[0].message.content == "hello"
        stream = await client.chat.completions.create(model="tiny", messages=messages, stream=True)
        assert "".join([part.choices[0].delta.content or "" async for part in stream]) == "hello"
        assert [model.id async for model in client.models.list()] == ["tiny"]
        assert (await client.models.retrieve("tiny")).id == "tiny"
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="nothing", messages=messages)


async def test_the_openai_client_sees_a_broken_stream_as_an_error() -> None:
    async def breaks(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
        writer.write(STREAM_HEAD)
        await chunk(writer, event("hel"))
        await asyncio.sleep(0.05)
        writer.transport.abort()

    async with (
        raw_engine(breaks) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
        openai.AsyncOpenAI(base_url=url + "/v1", api_key="any", max_retries=0) as client,
    ):
        messages: Any = [{"role": "user", "content": "hi"}]
        stream = await client.chat.completions.create(model="tiny", messages=messages, stream=True)
        with pytest.raises(openai.APIError):
            async for _ in stream:
                pass


@pytest.mark.parametrize("workflow", ["", "shop", "nobody-knows"])
async def test_a_tenant_cannot_raise_its_own_class(workflow: str) -> None:
    terms = WorkflowTerms(
        name="shop", pools=frozenset({"a100"}), deadline_seconds=60, class_deadlines={"gold": 20}
    )
    tenant = Tenant(name="support", workflow="shop", keyed=True)
    keeper = Doorkeeper(tenants={"shop": (tenant,)}, keys={fingerprint("k"): (tenant,)})
    seen: list[UpstreamRequest] = []
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url), workflows={"shop": terms}, doorkeeper=keeper) as path,
        serving(path.door) as url,
    ):
        note_releases(path.driver, seen)
        assert (await post(url, BODY))[0] == 401
        await post(
            url,
            BODY,
            authorization="Bearer k",
            x_hexflow_deadline_ms="100",
            x_gateway_inference_objective="gold",
            x_hexflow_workflow=workflow,
        )
        call = seen[0].call
        assert call.tenant == "support"
        assert round((call.deadline or 0) - call.query_arrival) == 60


async def test_the_limits_of_a_tenant_hold_for_calls_too() -> None:
    tenant = Tenant(name="support", workflow="shop", keyed=True, max_in_flight=1)
    keeper = Doorkeeper(tenants={"shop": (tenant,)}, keys={fingerprint("k"): (tenant,)})
    async with (
        raw_engine(silent) as engine,
        data_path(a_pool("a100", engine.url), doorkeeper=keeper) as path,
        serving(path.door) as url,
    ):
        first = asyncio.create_task(post(url, BODY, authorization="Bearer k", x_hexflow_query="q"))
        await path.until(lambda: len(engine.calls) == 1)
        same = asyncio.create_task(post(url, BODY, authorization="Bearer k", x_hexflow_query="q"))
        await path.until(lambda: len(engine.calls) == 2)  # a further call of the same query
        status, headers, content = await post(url, BODY, authorization="Bearer k")
        assert (status, error_of(content)["code"]) == (429, "too_many_in_flight")
        assert "retry-after" in headers
        first.cancel()
        same.cancel()
        await path.until(lambda: path.driver.outstanding == 0)


async def test_models_are_listed_whoever_serves_them() -> None:
    async with (
        raw_engine(well) as engine,
        data_path(a_pool("a100", engine.url), a_pool("cold", model="other/large")) as path,
        serving(path.door) as url,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(url + "/v1/models") as reply:
            assert [card["id"] for card in (await reply.json())["data"]] == ["other/large", "tiny"]
        async with session.get(url + "/v1/models/other/large") as reply:
            assert (await reply.json())["id"] == "other/large"
        async with session.get(url + "/v1/models/nix") as reply:
            assert (reply.status, error_of(await reply.read())["code"]) == (404, "model_not_found")


async def test_embeddings_pass_through() -> None:
    content = b'{"object":"list","data":[{"index":0,"embedding":[0.1]}],"usage":{"prompt_tokens":3,"total_tokens":3}}'

    async def embeds(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
        await answer(writer, content)

    async with (
        raw_engine(embeds) as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
        aiohttp.ClientSession() as session,
        session.post(url + "/v1/embeddings", data=b'{"model":"tiny","input":["a","b"]}') as reply,
    ):
        assert (reply.status, await reply.read()) == (200, content)
        assert path.value("hexflow_tokens_total", pool="a100", kind="prompt", source="usage") == 3
        assert engine.heads[0].startswith("POST /v1/embeddings ")
