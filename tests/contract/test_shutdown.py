"""Contract: keys, engines that know no priority, and the two ways to end under SIGTERM.

Each way needs a server of its own.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress

import httpx
import pytest

from support.engines import EngineServer
from support.openai_calls import (
    LONG,
    NO_KEEPING,
    WAITING,
    a_chat,
    asked,
    in_background,
    listen,
    served_in_order,
    until_metric,
    until_seen,
)

Start = Callable[[Sequence[str]], AbstractContextManager[EngineServer]]
KEY = {"authorization": "Bearer sk-contract"}
SILENT_SECONDS = 4.0
"""Who says nothing for so long after its port is closed says nothing more."""


@pytest.fixture(scope="module")
def guarded(start: Start) -> Iterator[EngineServer]:
    """A server with a key, first come first served, that finishes what it has under SIGTERM."""
    with start(["--max-num-seqs", "1", "--api-key", "sk-contract", "--shutdown-timeout", "60"]) as server:
        yield server


@pytest.fixture
async def holder(guarded: EngineServer) -> AsyncIterator[httpx.AsyncClient]:
    """Talk to it with its key."""
    async with httpx.AsyncClient(base_url=guarded.url, timeout=60, headers=KEY, limits=NO_KEEPING) as client:
        yield client


async def until_closed(url: str) -> None:
    """Wait until nobody listens any more."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            async with httpx.AsyncClient() as client:
                await client.get(f"{url}/health", timeout=1)
        except httpx.ConnectError:
            return
        except httpx.TransportError:  # it is late, or broke off what it had taken
            pass
        await asyncio.sleep(0.1)
    pytest.fail("the port is still open")


async def until_refused(client: httpx.AsyncClient) -> httpx.Response:
    """Wait until a server that was told to stop takes nothing new; return how it says so."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with suppress(
            httpx.TimeoutException
        ):  # the signal has not come through: this one was queued, and is withdrawn
            response = await client.post("/v1/chat/completions", json=a_chat(max_tokens=1), timeout=1)
            if response.status_code == 500:
                return response
    pytest.fail("it still takes new calls")


async def test_a_key_guards_v1_and_nothing_else(guarded: EngineServer, holder: httpx.AsyncClient) -> None:
    async with httpx.AsyncClient(base_url=guarded.url, limits=NO_KEEPING) as stranger:
        for headers in ({}, {"authorization": "Bearer wrong"}):
            for response in (
                await stranger.get("/v1/models", headers=headers),
                await stranger.post("/v1/chat/completions", json=a_chat(), headers=headers),
            ):
                assert (response.status_code, response.json()) == (401, {"error": "Unauthorized"})
        for path in ("/health", "/metrics", "/version"):
            assert (await stranger.get(path)).status_code == 200
    await asked(holder, a_chat())


async def test_cached_tokens_are_not_told_unless_enabled(holder: httpx.AsyncClient) -> None:
    assert (await asked(holder, a_chat()))["usage"].get("prompt_tokens_details") is None


async def test_a_request_id_is_not_echoed_unless_enabled(holder: httpx.AsyncClient) -> None:
    response = await holder.post("/v1/chat/completions", json=a_chat(), headers={"x-request-id": "mine"})
    assert "x-request-id" not in response.headers
    assert response.json()["id"] == "chatcmpl-mine"


async def test_without_the_policy_priority_is_ignored(holder: httpx.AsyncClient) -> None:
    bodies = [a_chat(f"{priority}", priority=priority) for priority in (5, 1, 3)]
    assert await served_in_order(holder, bodies, slots=1) == [0, 1, 2]


async def test_with_a_shutdown_timeout_it_finishes_what_it_has(
    guarded: EngineServer, holder: httpx.AsyncClient
) -> None:
    """The last test of this server: it ends here."""
    told: list[str] = []
    async with in_background() as waiting:
        async with in_background(listen(holder, a_chat(max_tokens=LONG), told.append)) as running:
            await until_seen(told, 3, calls=running)
            waiting += [asyncio.create_task(asked(holder, a_chat(f"{n}", max_tokens=40))) for n in range(2)]
            await until_metric(holder, WAITING, 2, calls=[*running, *waiting])
            guarded.terminate()
            refused = await until_refused(holder)
            assert refused.json()["error"]["type"] == "InternalServerError"
            async with httpx.AsyncClient(base_url=guarded.url) as other:  # its 500 may close the connection
                assert (await other.get("/health")).status_code == 200
            await until_seen(told, len(told) + 3, calls=[*running, *waiting])
        answers = await asyncio.gather(*waiting)
    for answer in answers:
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["usage"]["completion_tokens"] == 40
    await holder.aclose()
    await asyncio.to_thread(guarded.process.wait, 60)


async def test_under_sigterm_no_call_in_flight_looks_finished(start: Start) -> None:
    """A stream may end as ``abort`` or with an error, break off or fall silent: never as if it had succeeded."""
    seen: list[str] = []

    async def stream(client: httpx.AsyncClient, name: str) -> None:
        body = a_chat(name, max_tokens=LONG, stream=True)
        async with client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    event = json.loads(line[6:])
                    seen.append("error" if "error" in event else str(event["choices"][0]["finish_reason"]))

    with start(["--max-num-seqs", "1"]) as server:
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=60) as client,
            in_background(*(stream(client, f"{n}") for n in range(2))) as calls,
        ):
            await until_seen(seen, 10, calls=calls)
            server.terminate()
            await until_closed(server.url)
            ended, _ = await asyncio.wait(calls, timeout=SILENT_SECONDS)
            errors = {type(error) for call in ended if (error := call.exception()) is not None}
        assert set(seen) <= {"None", "abort", "error"}
        assert all(issubclass(error, httpx.TransportError) for error in errors)
        await asyncio.to_thread(server.process.wait, 60)
