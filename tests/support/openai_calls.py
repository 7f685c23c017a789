"""Ask an engine the way an OpenAI client does, and read what it answers."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence, Sized
from contextlib import asynccontextmanager
from typing import Any

import httpx

Json = dict[str, Any]


LONG = 15_000
"""Tokens that take either engine many seconds: a call of so many holds what it causes until it is withdrawn."""


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


Call = asyncio.Task[Any]


@asynccontextmanager
async def in_background(*calls: Coroutine[Any, Any, Any]) -> AsyncIterator[list[Call]]:
    """Make calls meanwhile; those that are left at the block's end are withdrawn. One may add to the list."""
    tasks: list[Call] = [asyncio.create_task(call) for call in calls]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def none_is_over(calls: Iterable[Call]) -> None:
    """Raise what ended a call, or that it was answered, where none may have ended yet."""
    for call in calls:
        if call.done():
            raise AssertionError(f"answered before what it was to cause was seen: {call.result()}")


async def until_seen(seen: Sized, count: int, *, calls: Iterable[Call], seconds: float = 60.0) -> None:
    """Wait until these calls, which go on until then, have left so many traces."""
    end = time.monotonic() + seconds
    while len(seen) < count:
        none_is_over(calls)
        assert time.monotonic() < end, f"{len(seen)} of {count} were seen within {seconds:g} s"
        await asyncio.sleep(0.02)


async def until_metric(
    client: httpx.AsyncClient, name: str, value: float, *, calls: Iterable[Call] = (), seconds: float = 60.0
) -> None:
    """Wait until a metric has a value.

    It must be one that lasts, since nobody can tell how late one looks. ``calls`` are those that make it last:
    when one of them is over, its own error is raised.
    """
    end = time.monotonic() + seconds
    while True:
        last = time.monotonic() >= end  # what was asked for before the end may be told long after it
        if (seen := await metric(client, name)) == value:
            return
        none_is_over(calls)
        assert not last, f"{name} is {seen} and never became {value}"
        await asyncio.sleep(0.02)


@asynccontextmanager
async def occupied(client: httpx.AsyncClient, *, slots: int) -> AsyncIterator[list[Call]]:
    """Keep all slots of an engine taken inside the block, by a call that outlasts it and is then withdrawn.

    It has a sample for each slot, so that all of them are free in the same step. Yields what holds them.
    """
    body = a_chat("blocker", max_tokens=LONG, n=slots, temperature=1.0)
    async with in_background(asked(client, body)) as calls:
        await until_metric(client, RUNNING, slots, calls=calls)
        yield calls
        none_is_over(calls)


async def listen(client: httpx.AsyncClient, body: Json, on_event: Callable[[str], object]) -> None:
    """Post a body with ``stream`` and hand on each event as it comes."""
    async with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as response:
        assert response.status_code == 200, await response.aread()
        async for line in lines(response):
            on_event(line)


async def served_in_order(client: httpx.AsyncClient, bodies: Sequence[Json], *, slots: int) -> list[int]:
    """Queue calls one after the other while all slots are taken; return their places as they get one.

    Each keeps its slot until it is withdrawn: however late one looks, the order is there to be seen. Those that
    get the slots together, so many at a time, are in no order among themselves.
    """
    order: dict[int, None] = {}

    async def one(place: int, body: Json) -> None:
        await listen(client, {**body, "max_tokens": LONG}, lambda _: order.setdefault(place))

    async with in_background() as calls:
        async with occupied(client, slots=slots) as blockers:
            for place, body in enumerate(bodies):
                calls.append(asyncio.create_task(one(place, body)))
                await until_metric(client, WAITING, place + 1, calls=[*blockers, *calls])
        left = set(calls)
        while left:
            before = len(order)
            await until_seen(order, before + min(slots, len(left)), calls=left)
            served = {calls[place] for place in list(order)[before:]}
            for call in served:
                call.cancel()
            left -= served
    await until_metric(client, RUNNING, 0)
    return list(order)
