"""Contract: metrics by vLLM's names, so that one dashboard and one router read both."""

import asyncio
import re
from pathlib import Path

import httpx

from support.openai_calls import (
    RUNNING,
    WAITING,
    a_chat,
    asked,
    in_background,
    metric,
    occupied,
    streamed,
    until_metric,
)

NAMES = Path(__file__).with_name("metrics.txt")
"""Each metric of vLLM with its type, one a line."""


async def test_every_metric_of_vllm_is_there_with_its_type(client: httpx.AsyncClient) -> None:
    text = (await client.get("/metrics")).text
    types = set(re.findall(r"^# TYPE (\S+ \S+)$", text, re.MULTILINE))
    assert set(NAMES.read_text().splitlines()) - types == set()


async def test_the_start_of_the_process_is_told(client: httpx.AsyncClient) -> None:
    assert await metric(client, "process_start_time_seconds") > 1.6e9


async def test_counters_grow_by_what_usage_says(client: httpx.AsyncClient) -> None:
    names = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:request_success_total")
    before = [await metric(client, name) for name in names]
    usages = [(await asked(client, a_chat(text)))["usage"] for text in ("first", "second one")]
    growth = [await metric(client, name) - value for name, value in zip(names, before, strict=True)]
    assert growth[0] == sum(usage["prompt_tokens"] for usage in usages)
    assert growth[1:] == [16, 2]


async def test_requests_are_counted_by_why_they_ended(client: httpx.AsyncClient) -> None:
    name, labels = (
        "vllm:request_success_total",
        {"finished_reason": "length", "model_name": "tiny", "engine": "0"},
    )
    before = await metric(client, name, **labels)
    await asked(client, a_chat())
    assert await metric(client, name, **labels) == before + 1


async def test_each_request_is_in_every_latency_histogram(client: httpx.AsyncClient) -> None:
    names = [
        "time_to_first_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds",
        "request_prefill_time_seconds", "request_decode_time_seconds", "request_inference_time_seconds",
        "request_prompt_tokens", "request_generation_tokens", "request_time_per_output_token_seconds",
    ]  # fmt: skip
    before = [await metric(client, f"vllm:{name}_count") for name in names]
    await streamed(client, a_chat())
    assert [await metric(client, f"vllm:{name}_count") for name in names] == [value + 1 for value in before]


async def test_gauges_show_what_runs_and_waits_and_then_nothing(client: httpx.AsyncClient) -> None:
    async with in_background() as waiting:
        async with occupied(client, slots=2) as blockers:
            waiting.append(asyncio.create_task(asked(client, a_chat())))
            await until_metric(client, WAITING, 1, calls=[*blockers, *waiting])
            assert await metric(client, "vllm:num_requests_waiting_by_reason", reason="capacity") == 1
            assert await metric(client, RUNNING) == 2
            assert 0 < await metric(client, "vllm:kv_cache_usage_perc") < 1
        await waiting[0]
    for gauge in (RUNNING, WAITING, "vllm:kv_cache_usage_perc"):
        await until_metric(client, gauge, 0, seconds=5)
