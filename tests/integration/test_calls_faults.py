"""Engines that misbehave, at the level of the driver: what a call's owner gets, and what is tried again."""

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

import pytest

from hexflow_router.breaker import BreakerRule
from hexflow_router.exchange import CallFailed, Placement
from hexflow_router.upstream import Address, TimeOuts
from hexflow_router.watch import ProbeRule
from support.datapath import STREAMED, a_pool, a_request, data_path
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
)

Body = dict[str, Any]


async def well(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    if body.get("stream"):
        writer.write(STREAM_HEAD)
        await chunk(writer, event("hel"))
        await chunk(writer, event("lo"))
        await chunk(writer, event(finish_reason="stop"))
        await chunk(writer, DONE)
        await chunk(writer, b"")
    else:
        await answer(writer, completion())


async def silent(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    await asyncio.sleep(60)


async def dies_at_once(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    writer.transport.abort()


async def dies_in_the_middle(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    writer.write(STREAM_HEAD)
    await chunk(writer, event("hel"))
    await asyncio.sleep(0.05)
    writer.transport.abort()


async def html(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    await answer(writer, b"<html><body>It works!</body></html>", kind="text/html")


async def rubbish(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    await answer(writer, b'{"choices": [{"index": 0, "mess')


async def redirect(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    await answer(
        writer,
        b"",
        status="307 Temporary Redirect",
        more="location: http://127.0.0.1:1/v1/chat/completions\r\n",
    )


async def aborted(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    if body.get("stream"):
        writer.write(STREAM_HEAD)
        await chunk(writer, event("hel"))
        await chunk(writer, event(finish_reason="abort"))
        await chunk(writer, DONE)
        await chunk(writer, b"")
    else:
        await answer(writer, completion(finish_reason="abort"))


async def stops_without_reason(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    writer.write(STREAM_HEAD)
    await chunk(writer, event("hel"))
    await chunk(writer, DONE)
    await chunk(writer, b"")


async def invalid_chunk(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    writer.write(STREAM_HEAD)
    await chunk(writer, event("hel"))
    await asyncio.sleep(0.1)
    writer.write(b"zz\r\nnonsense\r\n")
    await writer.drain()
    await asyncio.sleep(60)


async def ends_without_done(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    writer.write(STREAM_HEAD)
    await chunk(writer, event("hel"))
    await chunk(writer, event(finish_reason="stop"))
    await chunk(writer, b"")


async def overloaded(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    await answer(
        writer, b'{"error":{"message":"busy"}}', status="503 Service Unavailable", more="retry-after: 7\r\n"
    )


async def refuses(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    await answer(writer, b'{"error":{"message":"bad temperature"}}', status="400 Bad Request")


async def breaks(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    await answer(writer, b'{"error":"boom"}', status="500 Internal Server Error")


async def strange_status(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    await answer(writer, completion(), status="999 Odd")


async def strange_patience(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    writer.write(
        b"HTTP/1.1 429 Busy\r\nretry-after: \xb2\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
    )
    await writer.drain()


async def miscounts(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
    counts = {"prompt_tokens": -7, "completion_tokens": -3}
    if body.get("stream"):
        writer.write(STREAM_HEAD)
        await chunk(writer, event("hello", finish_reason="stop"))
        await chunk(writer, b"data: " + json.dumps({"choices": [], "usage": counts}).encode() + b"\n\n")
        await chunk(writer, DONE)
        await chunk(writer, b"")
    else:
        await answer(writer, json.dumps(json.loads(completion()) | {"usage": counts}).encode())


@pytest.mark.parametrize(
    "broken",
    [
        dies_at_once,
        dies_in_the_middle,
        html,
        rubbish,
        redirect,
        aborted,
        overloaded,
        breaks,
        strange_status,
        strange_patience,
    ],
)
async def test_a_call_of_ours_is_answered_by_another_instance(broken: Behaviour) -> None:
    placed: list[Placement] = []
    async with (
        raw_engine(broken) as bad,
        raw_engine(well) as good,
        data_path(a_pool("a100", bad.url, good.url)) as path,
    ):
        request = replace(a_request(ours=True), on_placed=placed.append)
        (exchange,) = path.driver.release([request])
        reply = await exchange.read()
        assert reply.body == completion()
        assert reply.usage.output_tokens == 3
        assert reply.token_source == "usage"
        assert [placement.attempts for placement in placed] == [1, 2]
        assert reply.placement == placed[-1]
        assert len(bad.calls) == len(good.calls) == 1
        assert path.driver.outstanding == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_an_engine_that_miscounts_is_estimated_instead(stream: bool) -> None:
    async with raw_engine(miscounts) as engine, data_path(a_pool("a100", engine.url)) as path:
        (exchange,) = path.driver.release([a_request(body=STREAMED, stream=True) if stream else a_request()])
        reply = await exchange.reply()
        assert b"hello" in b"".join([piece async for piece in reply.chunks])
        assert path.driver.outstanding == 0
        assert path.any_ready()


async def test_a_silent_instance_is_left_for_another() -> None:
    time_outs = TimeOuts(first_byte_seconds=0.3, idle_seconds=0.3, total_seconds=20)
    async with (
        raw_engine(silent) as bad,
        raw_engine(well) as good,
        data_path(a_pool("a100", bad.url, good.url), time_outs=time_outs) as path,
    ):
        exchanges = path.driver.release([a_request(ours=True), a_request(ours=True)])
        replies = [await exchange.read() for exchange in exchanges]
        assert [reply.placement.attempts for reply in replies].count(2) == 1
        assert path.value("hexflow_call_failures_total", pool="a100", reason="FirstByteTimeout") == 1
        await path.until(lambda: bad.gone == 1)


async def test_when_all_are_silent_the_call_ends_in_its_total_time() -> None:
    time_outs = TimeOuts(first_byte_seconds=60, idle_seconds=60, total_seconds=0.5)
    async with (
        raw_engine(silent) as one,
        raw_engine(silent) as other,
        data_path(a_pool("a100", one.url, other.url), time_outs=time_outs) as path,
    ):
        (exchange,) = path.driver.release([a_request()])
        with pytest.raises(CallFailed) as failed:
            await exchange.reply()
        assert (failed.value.status, failed.value.reason) == (504, "TotalTimeout")
        assert path.running() == 0
        await path.until(lambda: one.gone + other.gone == 1)


async def test_a_passed_through_stream_is_tried_elsewhere_before_its_first_byte() -> None:
    async with (
        raw_engine(dies_at_once) as bad,
        raw_engine(well) as good,
        data_path(a_pool("a100", bad.url, good.url)) as path,
    ):
        (exchange,) = path.driver.release([a_request(body=STREAMED, stream=True)])
        reply = await exchange.reply()
        body = b"".join([piece async for piece in reply.chunks])
        assert body.endswith(DONE)
        assert len(bad.calls) == len(good.calls) == 1


@pytest.mark.parametrize(
    "broken", [dies_in_the_middle, aborted, stops_without_reason, invalid_chunk, ends_without_done]
)
async def test_a_stream_that_breaks_ends_with_an_error_event_and_no_false_done(broken: Behaviour) -> None:
    time_outs = TimeOuts(first_byte_seconds=5, idle_seconds=0.5, total_seconds=20)
    async with (
        raw_engine(broken) as bad,
        raw_engine(broken) as other,
        data_path(a_pool("a100", bad.url, other.url), time_outs=time_outs) as path,
    ):
        (exchange,) = path.driver.release([a_request(body=STREAMED, stream=True)])
        reply = await exchange.reply()
        pieces = [piece async for piece in reply.chunks]
        body = b"".join(pieces)
        assert body.startswith(event("hel"))
        assert b"[DONE]" not in body
        assert b'"error":' in pieces[-1]
        assert pieces[-1].endswith(b"\n\n")
        assert len(bad.calls) + len(other.calls) == 1  # never again after the first byte
        assert path.driver.outstanding == 0


async def test_an_instance_alone_that_is_down_gives_502_to_a_passed_through_call() -> None:
    async with raw_engine(dies_at_once) as engine, data_path(a_pool("a100", engine.url)) as path:
        (exchange,) = path.driver.release([a_request()])
        with pytest.raises(CallFailed) as failed:
            await exchange.reply()
        assert (failed.value.status, failed.value.reason) == (502, "BrokenAnswer")
        assert len(engine.calls) == 1


async def test_forty_refusals_do_not_open_the_breaker_but_five_failures_do() -> None:
    rule = BreakerRule(failures=5, open_seconds=60)
    async with (
        raw_engine(refuses) as engine,
        data_path(a_pool("a100", engine.url), breaker_rule=rule) as path,
    ):
        for _ in range(40):
            (exchange,) = path.driver.release([a_request()])
            reply = await exchange.reply()
            assert reply.status == 400
            assert b"bad temperature" in b"".join([piece async for piece in reply.chunks])
        assert path.any_ready()
        engine.behaviour = breaks
        for _ in range(5):
            (exchange,) = path.driver.release([a_request()])
            assert (await exchange.reply()).status == 500
        assert not path.any_ready()


async def test_an_open_breaker_lets_one_call_through_and_closes_when_it_succeeds() -> None:
    rule = BreakerRule(failures=2, open_seconds=0.2)
    async with raw_engine(breaks) as engine, data_path(a_pool("a100", engine.url), breaker_rule=rule) as path:
        for _ in range(2):
            (exchange,) = path.driver.release([a_request()])
            await exchange.reply()
        assert not path.any_ready()
        engine.behaviour = well
        exchanges = path.driver.release([a_request(ours=True) for _ in range(3)])
        await asyncio.sleep(0.3)
        await path.discovery.look()
        assert path.running() == 1
        assert [(await exchange.read()).status for exchange in exchanges] == [200, 200, 200]
        assert path.driver.instances()[0].profile.slots == 32


async def test_an_overloaded_engine_alone_passes_its_retry_after_on() -> None:
    async with raw_engine(overloaded) as engine, data_path(a_pool("a100", engine.url)) as path:
        (exchange,) = path.driver.release([a_request()])
        reply = await exchange.reply()
        assert reply.status == 503
        assert dict(reply.headers)["retry-after"] == "7"
        assert len(engine.calls) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        b'{"error":{"message":"priority scheduling is not enabled"}}',
        b'{"error":{"message":"Unknown parameter: \'priority\'.","code":"unknown_parameter"}}',
        b'{"detail":[{"type":"extra_forbidden","loc":["body","priority"],"msg":"Extra inputs are not permitted"}]}',
    ],
)
async def test_an_engine_that_refuses_the_priority_is_sent_none_any_more(refusal: bytes) -> None:
    async def only_without(engine: RawEngine, writer: asyncio.StreamWriter, body: Body) -> None:
        if "priority" in body:
            await answer(writer, refusal, status="400 Bad Request")
        else:
            await well(engine, writer, body)

    async with (
        raw_engine(only_without) as engine,
        data_path(a_pool("a100", engine.url), policy="HexGenFlow") as path,
    ):
        for _ in range(2):
            (exchange,) = path.driver.release([a_request(ours=True)])
            assert (await exchange.read()).status == 200
        assert ["priority" in body for body in engine.calls] == [True, False, False]


async def test_cancelling_the_reader_stops_the_call_at_the_engine() -> None:
    async with raw_engine(silent) as engine, data_path(a_pool("a100", engine.url)) as path:
        (exchange,) = path.driver.release([a_request(ours=True)])
        reading = asyncio.create_task(exchange.read())
        await path.until(lambda: len(engine.calls) == 1)
        reading.cancel()
        await path.until(lambda: engine.gone == 1, seconds=0.5)
        assert path.driver.outstanding == 0
        assert path.running() == 0


async def test_closing_the_driver_ends_every_call_with_a_reason() -> None:
    async with raw_engine(silent) as engine, data_path(a_pool("a100", engine.url)) as path:
        exchanges = path.driver.release([a_request(ours=True), a_request(ours=True)])
        await path.until(lambda: len(engine.calls) == 2)
        await path.driver.close()
        for exchange in [*exchanges, *path.driver.release([a_request()])]:
            with pytest.raises(CallFailed) as failed:
                await exchange.read()
            assert failed.value.reason == "Stopping"


async def test_an_instance_that_cannot_be_reached_is_502_and_takes_no_more_calls() -> None:
    async with raw_engine(well) as engine, data_path(a_pool("a100", engine.url)) as path:
        watch = path.discovery.watches()[0]
        path.driver.tell(path.driver.instances()[0], Address(url="http://127.0.0.1:1"))
        (exchange,) = path.driver.release([a_request()])
        with pytest.raises(CallFailed) as failed:
            await exchange.reply()
        assert (failed.value.status, failed.value.reason) == (502, "ConnectFailed")
        assert watch.reason == "ConnectFailed"
        assert not path.any_ready()


async def test_an_endpoint_that_cannot_be_reached_is_left_out_and_its_calls_end_with_a_reason() -> None:
    far = a_pool("far", "http://192.0.2.1:8000")  # an address kept for documentation: nobody answers there
    async with data_path(far, probe_rule=ProbeRule(time_out_seconds=1.5)) as path:
        assert path.discovery.watches()[0].reason in ("ConnectFailed", "FirstByteTimeout")
        request = a_request(ours=True)
        soon = replace(request, call=replace(request.call, deadline=time.time() + 0.3))
        (exchange,) = path.driver.release([soon])
        with pytest.raises(CallFailed) as failed:
            await exchange.read()
        assert (failed.value.status, failed.value.reason) == (503, "NoInstanceInTime")


async def test_rubbish_where_an_engine_should_be_is_told_when_it_is_looked_at() -> None:
    async def website(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await answer(writer, b"<html>Welcome</html>", kind="text/html")
        writer.close()

    server = await asyncio.start_server(website, "127.0.0.1", 0)
    async with (
        server,
        data_path(a_pool("a100", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as path,
    ):
        assert path.discovery.watches()[0].reason == "Rubbish"
        assert not path.any_ready()
