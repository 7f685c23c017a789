"""Contract: a caller who goes away frees the engine at once, streamed or not."""

import asyncio
from contextlib import suppress

import httpx

from support.openai_calls import (
    LONG,
    RUNNING,
    WAITING,
    a_chat,
    asked,
    lines,
    metric,
    occupied,
    until_metric,
)

GENEROUS_SECONDS = 5.0
"""For what must happen at once: both engines share the machine with other tests."""


async def test_leaving_a_stream_frees_the_engine(client: httpx.AsyncClient) -> None:
    async with client.stream(
        "POST", "/v1/chat/completions", json=a_chat(max_tokens=LONG, stream=True)
    ) as response:
        stream = lines(response)
        for _ in range(3):
            await anext(stream)
        assert await metric(client, RUNNING) == 1
    await until_metric(client, RUNNING, 0, seconds=GENEROUS_SECONDS)


async def test_leaving_before_an_unstreamed_answer_frees_the_engine(client: httpx.AsyncClient) -> None:
    call = asyncio.create_task(client.post("/v1/chat/completions", json=a_chat(max_tokens=LONG)))
    await until_metric(client, RUNNING, 1)
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    await until_metric(client, RUNNING, 0, seconds=GENEROUS_SECONDS)


async def test_leaving_the_queue_leaves_the_others_in_it(client: httpx.AsyncClient) -> None:
    async with occupied(client, slots=2):
        waiting = [asyncio.create_task(asked(client, a_chat(f"{n}", max_tokens=4))) for n in range(3)]
        await until_metric(client, WAITING, 3)
        waiting[1].cancel()
        await until_metric(client, WAITING, 2, seconds=GENEROUS_SECONDS)
    answers = await asyncio.gather(waiting[0], waiting[2])
    assert [answer["usage"]["completion_tokens"] for answer in answers] == [4, 4]
    assert await metric(client, RUNNING) == 0


async def test_callers_who_left_cost_the_next_nothing(client: httpx.AsyncClient) -> None:
    calls = [asyncio.create_task(asked(client, a_chat(f"{n}", max_tokens=LONG))) for n in range(4)]
    await until_metric(client, WAITING, 2)
    for call in calls:
        call.cancel()
    await until_metric(client, RUNNING, 0, seconds=GENEROUS_SECONDS)
    await until_metric(client, WAITING, 0, seconds=GENEROUS_SECONDS)
    assert (await asked(client, a_chat()))["usage"]["completion_tokens"] == 8
