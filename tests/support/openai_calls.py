"""Ask an engine the way an OpenAI client does, and read what it answers."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

Json = dict[str, Any]


LONG = 15_000
"""Tokens that take either engine many seconds."""
APART = 400
"""Tokens whose end lies so far from the next call's that a starved client still sees the two in order."""


NO_KEEPING = httpx.Limits(max_keepalive_connections=0)
"""One connection for each request. A server closes an idle one after five seconds, as httpx would itself: whoever
keeps connections loses the race now and then, and the request with it."""


def a_chat(text: str = "hello", /, **fields: Any) -> Json:
    """Return a chat body of exactly eight tokens of output, unless told otherwise."""
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 8,
        "ignore_eos": True,
        "temperature": 0,
    }
    return {name: value for name, value in {**body, **fields}.items() if value is not ...}


def a_completion(prompt: Any = "hello", /, **fields: Any) -> Json:
    """Return a plain completion's body of exactly eight tokens of output, unless told otherwise."""
    body = {"model": "tiny", "prompt": prompt, "max_tokens": 8, "ignore_eos": True, "temperature": 0}
    return {name: value for name, value in {**body, **fields}.items() if value is not ...}


async def asked(client: httpx.AsyncClient, body: Json, *, path: str = "/v1/chat/completions") -> Json:
    """Post a body and return the answer, which must be well."""
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return answer


async def lines(response: httpx.Response) -> AsyncIterator[str]:
    """Yield the data of a stream's events."""
    async for line in response.aiter_lines():
        if line:
            assert line.startswith("data: "), line
            yield line.removeprefix("data: ")


async def streamed(
    client: httpx.AsyncClient, body: Json, *, path: str = "/v1/chat/completions"
) -> list[Json]:
    """Post a body with ``stream`` and return the events, which must end by ``[DONE]``."""
    async with client.stream("POST", path, json={**body, "stream": True}) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        data = [line async for line in lines(response)]
    assert data[-1] == "[DONE]"
    return [json.loads(line) for line in data[:-1]]


def text_of(events: list[Json], *, index: int = 0) -> str:
    """Put a choice's text together from a stream's events."""
    choices = [choice for event in events for choice in event["choices"] if choice["index"] == index]
    return "".join(
        choice["delta"].get("content") or "" if "delta" in choice else choice["text"] for choice in choices
    )


RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"


async def metric(client: httpx.AsyncClient, name: str, **labels: str) -> float:
    """Return the sum of a metric over the series that have these labels; NaN where there is none."""
    text = (await client.get("/metrics")).text
    total, found = 0.0, False
    for match in re.finditer(rf"^{re.escape(name)}(?:{{(.*?)}})? (\S+)$", text, re.MULTILINE):
        if all(f'{label}="{value}"' in (match[1] or "") for label, value in labels.items()):
            total, found = total + float(match[2]), True
    return total if found else float("nan")


async def until_metric(client: httpx.AsyncClient, name: str, value: float, *, seconds: float = 60.0) -> None:
    """Wait until a metric has a value."""
    end = time.monotonic() + seconds
    while (seen := await metric(client, name)) != value:
        assert time.monotonic() < end, f"{name} is {seen} and never became {value}"
        await asyncio.sleep(0.02)


@asynccontextmanager
async def occupied(client: httpx.AsyncClient, *, slots: int) -> AsyncIterator[None]:
    """Keep all slots of an engine taken inside the block, by calls that outlast it and are then withdrawn."""
    calls = [
        asyncio.create_task(asked(client, a_chat(f"blocker {n}", max_tokens=LONG))) for n in range(slots)
    ]
    try:
        await until_metric(client, RUNNING, slots)
        yield
        assert not any(call.done() for call in calls), "the engine was not busy long enough"
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def served_in_order(client: httpx.AsyncClient, bodies: Sequence[Json], *, slots: int) -> list[int]:
    """Queue calls one after the other while all slots are taken; return their places as they finish."""
    finished: list[int] = []

    async def one(place: int, body: Json) -> None:
        await asked(client, body)
        finished.append(place)

    async with asyncio.TaskGroup() as group, occupied(client, slots=slots):
        for place, body in enumerate(bodies):
            group.create_task(one(place, body))
            await until_metric(client, WAITING, place + 1)
    return finished
