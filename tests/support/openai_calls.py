"""Ask an engine the way an OpenAI client does, and read what it answers."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx

Json = dict[str, Any]


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


async def metric(client: httpx.AsyncClient, name: str, **labels: str) -> float:
    """Return the sum of a metric over the series that have these labels; NaN where there is none."""
    text = (await client.get("/metrics")).text
    total, found = 0.0, False
    for match in re.finditer(rf"^{re.escape(name)}(?:{{(.*?)}})? (\S+)$", text, re.MULTILINE):
        if all(f'{label}="{value}"' in (match[1] or "") for label, value in labels.items()):
            total, found = total + float(match[2]), True
    return total if found else float("nan")
