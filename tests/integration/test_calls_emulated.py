"""Emulated instances in processes of their own: killed, stopped, restarted, and left by their clients."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from hexflow_router.discovery import Discovery, endpoint_id
from hexflow_router.exchange import CallFailed
from hexflow_router.watch import ProbeRule
from hexflow_scheduler import InstanceState
from support.datapath import BODY, STREAMED, a_pool, a_request, data_path, watching
from support.engineprocess import engine_process
from support.serving import serving

CHAT = "/v1/chat/completions"
QUICK = ProbeRule(interval_seconds=0.1, time_out_seconds=1.0, gone_after=2)


async def test_an_instance_killed_in_the_middle_of_a_call_of_ours_leaves_it_answered_by_another() -> None:
    async with (
        engine_process() as first,
        engine_process() as second,
        data_path(a_pool("a100", first.url), a_pool("l40s", second.url)) as path,
    ):
        exchanges = path.driver.release([a_request(ours=True, max_tokens=100) for _ in range(4)])
        await asyncio.sleep(0.3)
        assert {exchange.placement.pool for exchange in exchanges if exchange.placement} == {"a100", "l40s"}
        first.kill()
        replies = [await exchange.read() for exchange in exchanges]
        assert {reply.placement.pool for reply in replies} == {"l40s"}
        assert sorted(reply.placement.attempts for reply in replies) == [1, 1, 2, 2]
        assert all(reply.usage.output_tokens == 100 for reply in replies)


async def test_an_instance_killed_in_the_middle_of_a_stream_ends_it_with_an_error_event() -> None:
    async with (
        engine_process() as first,
        engine_process() as second,
        data_path(a_pool("a100", first.url), a_pool("l40s", second.url)) as path,
        serving(path.door) as url,
        aiohttp.ClientSession() as session,
        session.post(url + CHAT, data=STREAMED) as reply,
    ):
        assert reply.status == 200, await reply.text()
        body = await reply.content.readuntil(b"\n\n")
        (first if path.driver.in_flight(endpoint_id("a100", first.url)) else second).kill()
        body += await reply.read()
        assert b"[DONE]" not in body
        assert json.loads(body.strip().rpartition(b"data: ")[2])["error"]["reason"] == "BrokenAnswer"
        await path.until(lambda: path.driver.outstanding == 0)


async def test_a_passed_through_call_that_is_not_streamed_is_tried_elsewhere_when_its_instance_dies() -> None:
    async with (
        engine_process(output="fixed:50") as first,
        engine_process(output="fixed:50") as second,
        data_path(a_pool("a100", first.url), a_pool("l40s", second.url)) as path,
        serving(path.door) as url,
        aiohttp.ClientSession() as session,
    ):
        asked = asyncio.ensure_future(session.post(url + CHAT, data=BODY))
        await path.until(lambda: path.running() == 1)
        await asyncio.sleep(0.2)
        (first if path.driver.in_flight(endpoint_id("a100", first.url)) else second).kill()
        reply = await asked
        assert reply.status == 200, await reply.text()
        assert json.loads(await reply.read())["usage"]["completion_tokens"] == 50


async def test_a_server_told_to_stop_ends_its_streams_with_a_failure_and_not_as_if_they_were_whole() -> None:
    async with (
        engine_process() as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
        openai.AsyncOpenAI(base_url=url + "/v1", api_key="any", max_retries=0) as client,
    ):
        messages: Any = [{"role": "user", "content": "hi"}]
        stream = await client.chat.completions.create(model="tiny", messages=messages, stream=True)
        with pytest.raises(openai.APIError):
            async for _ in stream:
                engine.process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("body", [BODY, STREAMED])
async def test_the_engine_itself_counts_no_call_half_a_second_after_the_client_left(body: bytes) -> None:
    async with (
        engine_process(output="fixed:2000") as engine,
        data_path(a_pool("a100", engine.url)) as path,
        serving(path.door) as url,
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(
            f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
        )
        async with asyncio.timeout(5):
            while await engine.running() == 0:
                await asyncio.sleep(0.02)
        writer.transport.abort()
        async with asyncio.timeout(0.5):
            while await engine.running():
                await asyncio.sleep(0.02)
        assert path.driver.outstanding == 0


async def test_a_restarted_server_is_another_instance_and_what_waits_goes_to_it() -> None:
    async with engine_process() as engine, data_path(a_pool("a100", engine.url), probe_rule=QUICK) as path:
        (before,) = path.driver.instances()
        port = int(engine.url.rpartition(":")[2])
        async with watching(path.discovery):
            (exchange,) = path.driver.release([a_request(ours=True, max_tokens=100)])
            await path.until(lambda: path.running() == 1)
            engine.kill()
            await path.until(lambda: not path.any_ready())
            async with engine_process(port=port, output="fixed:10"):
                reply = await exchange.read()
                (after,) = path.driver.instances()
                assert reply.placement.instance_id == after.instance_id != before.instance_id
                assert after.state is InstanceState.READY


async def test_instances_come_and_go_with_the_file_that_lists_them(tmp_path: Path) -> None:
    file = tmp_path / "instances.json"

    def write(*entries: tuple[str, str]) -> None:
        listed = [{"id": name, "pool": "a100", "url": url} for name, url in entries]
        scratch = tmp_path / "scratch"
        scratch.write_text(json.dumps({"instances": listed}))
        scratch.replace(file)

    async with engine_process(output="fixed:5") as engine, data_path(a_pool("a100")) as path:
        discovery = Discovery(path.driver, instances_file=file, probe_rule=QUICK)
        discovery.configure([a_pool("a100")])
        async with watching(discovery):
            (exchange,) = path.driver.release([a_request(ours=True)])  # waits for an instance to come
            write(("a100-0", engine.url))
            assert (await exchange.read()).placement.instance_id == "a100-0"
            file.write_text("{ not json")
            await asyncio.sleep(0.5)
            assert [instance.instance_id for instance in path.driver.instances()] == ["a100-0"]
            write()
            await path.until(lambda: not path.driver.instances())


async def test_a_hanging_server_is_given_up_and_its_calls_go_elsewhere() -> None:
    async with (
        engine_process() as first,
        engine_process(output="fixed:5") as second,
        data_path(a_pool("a100", first.url), a_pool("l40s", second.url), probe_rule=QUICK) as path,
        watching(path.discovery),
    ):
        exchanges = path.driver.release([a_request(ours=True) for _ in range(2)])
        await path.until(lambda: path.driver.in_flight(endpoint_id("a100", first.url)) == 1)
        first.process.send_signal(signal.SIGSTOP)
        replies = [await exchange.read() for exchange in exchanges]
        assert {reply.placement.pool for reply in replies} == {"l40s"}


async def test_an_engine_that_answers_errors_and_rubbish_is_left_for_another() -> None:
    async with (
        engine_process(output="fixed:5") as first,
        engine_process(output="fixed:5") as second,
        data_path(a_pool("a100", first.url), a_pool("l40s", second.url)) as path,
    ):
        await first.fault("error:1", "rubbish:1", "cut:1", "abort:1")
        for _ in range(4):
            (exchange,) = path.driver.release([a_request(ours=True)])
            reply = await exchange.read()
            assert (reply.placement.pool, reply.placement.attempts) == ("l40s", 2)
        (exchange,) = path.driver.release([a_request(ours=True)])
        assert (await exchange.read()).placement.pool == "a100"


async def test_a_prompt_that_no_instance_takes_is_told_so() -> None:
    async with (
        engine_process("--max-model-len", "1000") as engine,
        data_path(a_pool("a100", engine.url)) as path,
    ):
        (exchange,) = path.driver.release([a_request(ours=True, prompt_tokens=5000)])
        with pytest.raises(CallFailed) as failed:
            await exchange.read()
        assert (failed.value.status, failed.value.reason) == (400, "ContextTooLong")
