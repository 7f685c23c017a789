"""Contract: the prefix cache, as usage and metrics tell of it."""

from uuid import uuid4

import httpx

from support.engines import BLOCK
from support.openai_calls import a_chat, asked, metric


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
