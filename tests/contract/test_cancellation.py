"""Contract: a caller who goes away frees the engine at once, streamed or not."""

import asyncio
import time
from contextlib import suppress

import httpx

from support.openai_calls import a_chat, asked, lines, metric

LONG = 2000
GENEROUS_SECONDS = 5.0
"""For what must happen at once: both engines share the machine with other tests."""


async def until(client: httpx.AsyncClient, name: str, value: float) -> float:
    """Wait until a metric has a value; return how long it took."""
    began = time.monotonic()
    while await metric(client, name) != value:
        assert time.monotonic() < began + GENEROUS_SECONDS, f"{name} never became {value}"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"


async def test_leaving_a_stream_frees_the_engine(client: httpx.AsyncClient) -> None:
    async with client.stream(
        "POST", "/v1/chat/completions", json=a_chat(max_tokens=LONG, stream=True)
    ) as response:
        stream = lines(response)
        for _ in range(3):
            await anext(stream)
        assert await metric(client, RUNNING) == 1
    await until(client, RUNNING, 0)


async def test_leaving_before_an_unstreamed_answer_frees_the_engine(client: httpx.AsyncClient) -> None:
    call = asyncio.create_task(client.post("/v1/chat/completions", json=a_chat(max_tokens=LONG)))
    await until(client, RUNNING, 1)
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    await until(client, RUNNING, 0)


async def test_leaving_the_queue_leaves_the_others_in_it(client: httpx.AsyncClient) -> None:
    running = [asyncio.create_task(asked(client, a_chat(f"{n}", max_tokens=600))) for n in range(2)]
    await until(client, RUNNING, 2)
    waiting = [asyncio.create_task(asked(client, a_chat(f"w{n}", max_tokens=4))) for n in range(3)]
    await until(client, WAITING, 3)
    waiting[1].cancel()
    await until(client, WAITING, 2)
    answers = await asyncio.gather(*running, waiting[0], waiting[2])
    assert [answer["usage"]["completion_tokens"] for answer in answers] == [600, 600, 4, 4]
    assert await metric(client, RUNNING) == 0


async def test_a_caller_who_left_costs_the_next_nothing(client: httpx.AsyncClient) -> None:
    calls = [asyncio.create_task(asked(client, a_chat(f"{n}", max_tokens=LONG))) for n in range(4)]
    await until(client, RUNNING, 2)
    for call in calls:
        call.cancel()
    await until(client, RUNNING, 0)
    await until(client, WAITING, 0)
    assert (await asked(client, a_chat()))["usage"]["completion_tokens"] == 8
