"""Contract: whom a freed slot goes to under ``--scheduling-policy priority``."""

import asyncio

import httpx

from support.openai_calls import a_chat, asked, metric


async def order_of(client: httpx.AsyncClient, priorities: list[int]) -> list[int]:
    """Queue one call of each priority behind two long ones; return the priorities as they finish."""
    finished: list[int] = []

    async def one(priority: int) -> None:
        await asked(client, a_chat(f"call {priority}", max_tokens=200, priority=priority))
        finished.append(priority)

    blockers = [asyncio.create_task(asked(client, a_chat(f"b{n}", max_tokens=1200))) for n in range(2)]
    while await metric(client, "vllm:num_requests_running") != 2:
        await asyncio.sleep(0.02)
    calls = []
    for priority in priorities:
        calls.append(asyncio.create_task(one(priority)))
        while await metric(client, "vllm:num_requests_waiting") != len(calls):
            await asyncio.sleep(0.02)
    await asyncio.gather(*blockers, *calls)
    return finished


async def test_the_lowest_number_goes_first(client: httpx.AsyncClient) -> None:
    # Two run at once, so neighbours may swap; the halves may not.
    finished = await order_of(client, [40, 30, 20, 10])
    assert set(finished[:2]) == {10, 20}


async def test_a_negative_number_goes_before_zero(client: httpx.AsyncClient) -> None:
    finished = await order_of(client, [0, 1, 2, -5])
    assert set(finished[:2]) == {-5, 0}
