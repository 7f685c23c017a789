"""Contract: a caller who goes away frees the engine at once, streamed or not."""

import asyncio

import httpx

from support.openai_calls import (
    LONG,
    RUNNING,
    WAITING,
    a_chat,
    asked,
    in_background,
    lines,
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
        await until_metric(client, RUNNING, 1, seconds=GENEROUS_SECONDS)
    await until_metric(client, RUNNING, 0, seconds=GENEROUS_SECONDS)


async def test_leaving_before_an_unstreamed_answer_frees_the_engine(client: httpx.AsyncClient) -> None:
    async with in_background(asked(client, a_chat(max_tokens=LONG))) as calls:
        await until_metric(client, RUNNING, 1, calls=calls)
    await until_metric(client, RUNNING, 0, seconds=GENEROUS_SECONDS)


async def test_leaving_the_queue_leaves_the_others_in_it(client: httpx.AsyncClient) -> None:
    async with in_background() as waiting:
        async with occupied(client, slots=2) as blockers:
            waiting += [asyncio.create_task(asked(client, a_chat(f"{n}", max_tokens=4))) for n in range(3)]
            await until_metric(client, WAITING, 3, calls=[*blockers, *waiting])
            waiting.pop(1).cancel()
            await until_metric(client, WAITING, 2, calls=[*blockers, *waiting], seconds=GENEROUS_SECONDS)
        answers = await asyncio.gather(*waiting)
    assert [answer["usage"]["completion_tokens"] for answer in answers] == [4, 4]
    await until_metric(client, RUNNING, 0, seconds=GENEROUS_SECONDS)


async def test_callers_who_left_cost_the_next_nothing(client: httpx.AsyncClient) -> None:
    async with in_background(*(asked(client, a_chat(f"{n}", max_tokens=LONG)) for n in range(4))) as calls:
        await until_metric(client, WAITING, 2, calls=calls)
    await until_metric(client, RUNNING, 0, seconds=GENEROUS_SECONDS)
    await until_metric(client, WAITING, 0, seconds=GENEROUS_SECONDS)
    assert (await asked(client, a_chat()))["usage"]["completion_tokens"] == 8
