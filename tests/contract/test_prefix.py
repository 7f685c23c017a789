"""Contract: the prefix cache, as usage and metrics tell of it."""

import asyncio
from uuid import uuid4

import httpx

from support.engines import BLOCK
from support.openai_calls import WAITING, a_chat, asked, in_background, metric, occupied, until_metric


def a_schema() -> str:
    """Return the long constant beginning of some prompts, a new one each time."""
    return f"{uuid4()} " + "CREATE TABLE customers (id INTEGER, city TEXT); " * 20


async def cached(client: httpx.AsyncClient, text: str) -> int:
    usage = (await asked(client, a_chat(text)))["usage"]
    return int(usage["prompt_tokens_details"]["cached_tokens"])


async def test_a_prompt_seen_before_is_found(client: httpx.AsyncClient) -> None:
    schema = a_schema()
    assert await cached(client, schema + "one") < BLOCK * 2
    again = await cached(client, schema + "two")
    assert again >= 200
    assert again % BLOCK == 0


async def test_the_same_words_behind_another_beginning_are_not_found(client: httpx.AsyncClient) -> None:
    schema = a_schema()
    await cached(client, schema)
    assert await cached(client, f"{uuid4()}" + schema) < BLOCK * 2


async def test_a_whole_prompt_is_never_found_entirely(client: httpx.AsyncClient) -> None:
    schema = a_schema()
    answer = await asked(client, a_chat(schema))
    assert await cached(client, schema) < answer["usage"]["prompt_tokens"]


async def test_the_metrics_count_what_was_found(client: httpx.AsyncClient) -> None:
    names = ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total")
    before = [await metric(client, name) for name in names]
    schema = a_schema()
    answers = [await asked(client, a_chat(schema + end)) for end in ("a", "b")]
    queries, hits = [await metric(client, name) - value for name, value in zip(names, before, strict=True)]
    usages = [answer["usage"] for answer in answers]
    assert queries == sum(usage["prompt_tokens"] for usage in usages)
    assert hits == sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages) > 0


async def test_siblings_of_one_step_share_their_prompt(client: httpx.AsyncClient) -> None:
    """All slots become free at once, so the two that wait for one are let in by the same step."""
    schema = a_schema()
    async with in_background() as siblings:
        async with occupied(client, slots=2) as blockers:
            siblings += [asyncio.create_task(cached(client, schema)) for _ in range(2)]
            await until_metric(client, WAITING, 2, calls=[*blockers, *siblings])
        first, second = sorted(await asyncio.gather(*siblings))
    assert first < BLOCK * 2
    assert second >= 200
