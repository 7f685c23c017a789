"""Where an engine spent the time of its calls, read from its own metrics (vLLM's names)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

_PARTS = {
    "vllm:request_queue_time_seconds": "queued",
    "vllm:request_prefill_time_seconds": "prefill",
    "vllm:request_decode_time_seconds": "decode",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTime:
    """Sum up the seconds of all calls that an engine has completed."""

    completions: int = 0
    queued_seconds: float = 0.0
    """Between arrival at the engine and the first step of the prefill."""
    prefill_seconds: float = 0.0
    """Reading the prompt, other calls' steps in between included."""
    decode_seconds: float = 0.0
    """Writing the answer, other calls' prefills in between included."""


async def engine_times(urls: Mapping[str, str]) -> dict[str, EngineTime]:
    """Return the time of each engine that tells it, by the names given for their URLs."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        times = await asyncio.gather(*(_read(session, url) for url in urls.values()))
    return {name: time for name, time in zip(urls, times, strict=True) if time is not None}


async def _read(session: aiohttp.ClientSession, url: str) -> EngineTime | None:
    try:
        async with asyncio.timeout(5), session.get(f"{url}/metrics") as response:
            return parse(await response.text())
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return None  # an engine that has gone, or that is not vLLM: the table goes without it


def parse(text: str) -> EngineTime:
    """Read the metrics of an engine."""
    sums = dict.fromkeys(_PARTS.values(), 0.0)
    completions = 0
    for family in text_string_to_metric_families(text):
        part = _PARTS.get(family.name)
        if part is None:
            continue
        sums[part] = sum(sample.value for sample in family.samples if sample.name.endswith("_sum"))
        if part == "decode":
            completions = int(sum(s.value for s in family.samples if s.name.endswith("_count")))
    return EngineTime(
        completions=completions,
        queued_seconds=sums["queued"],
        prefill_seconds=sums["prefill"],
        decode_seconds=sums["decode"],
    )
