"""What ends a query early, or threatens to: a client that leaves, a clock, an engine that fails.

A query always ends, with a reason, and what it had at the engines ends with it.
"""

import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest

from support.router import (
    QUESTION,
    WORKFLOW,
    RunningRouter,
    a_laptop,
    a_router,
    server_events,
)
from support.serving import serving
from support.waiting import eventually

PATH = f"/v1/workflows/{WORKFLOW}/queries"
SLOW = "freeze:100000"
"""Engines that stand still."""


async def leave_when_busy(router: RunningRouter, **body: object) -> float:
    """Ask, go away once an engine is busy, and return the seconds until no engine is."""

    async def ask() -> None:
        async with router.client.stream("POST", PATH, json={"question": QUESTION, **body}) as response:
            async for _ in response.aiter_bytes():
                pass

    asking = asyncio.create_task(ask())
    await eventually(lambda: router.router.driver.outstanding > 0)
    await eventually(router.busy)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    left = asyncio.get_running_loop().time()

    async def idle() -> bool:
        return await router.busy() == 0

    await eventually(idle)
    return asyncio.get_running_loop().time() - left


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_frees_the_engines_within_half_a_second(
    tmp_path: Path, stream: bool
) -> None:
    async with a_router(a_laptop(tmp_path / "laptop"), time_scale=1) as router:
        await router.fault("slow:20")
        seconds = await leave_when_busy(router, stream=stream)
        assert seconds < 0.5
        assert router.router.driver.outstanding == 0
        page = (await router.admin.get("/metrics")).text
    assert 'status="Cancelled",tenant="",workflow="shop-questions"} 1.0' in page
    assert 'hexflow_client_gone_total{door="queries"} 1.0' in page


async def test_an_async_query_outlives_the_reader_of_its_events(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        address = (await router.ask(headers={"prefer": "respond-async"})).headers["location"]
        async with router.client.stream("GET", f"{address}/events") as response:
            await anext(server_events(response))

        async def answered() -> bool:
            return bool((await router.client.get(address)).json()["status"] == "Succeeded")

        await eventually(answered)


async def test_a_cancelled_query_says_so_and_frees_the_engines(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop"), time_scale=1) as router:
        await router.fault("slow:20")
        address = (await router.ask(headers={"prefer": "respond-async"})).headers["location"]
        await eventually(router.busy)
        cancelled = await router.client.delete(address)
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "Cancelled")
        assert cancelled.json()["reason"] == "Cancelled"

        async def idle() -> bool:
            return await router.busy() == 0

        await eventually(idle, seconds=0.5)
        again = await router.client.delete(address)
        assert again.json() == cancelled.json() == (await router.client.get(address)).json()
        async with router.client.stream("GET", f"{address}/events") as response:
            names = [event["event"] async for event in server_events(response)]
    assert names[-1] == "query.finished"


async def test_under_abort_a_late_query_ends_at_its_deadline(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop", slo={"deadlineSeconds": 60, "onDeadline": "Abort"})
    async with a_router(laptop) as router:
        await router.fault(SLOW)
        response = await router.ask(deadlineSeconds=20)
        answer = response.json()
        assert response.status_code == 504
        assert (answer["status"], answer["reason"]) == ("DeadlineExceeded", "DeadlineExceeded")
        assert "20 seconds" in answer["error"]["message"]
        assert answer["deadlineMet"] is False
        assert 19 < answer["seconds"] < 100
        assert answer["stages"][0]["calls"][0]["status"] == "Cancelled"
        await eventually(lambda: router.router.driver.outstanding == 0)


async def test_under_finish_a_late_answer_comes_and_says_what_was_skipped(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop"), hard_cap_factor=1000) as router:
        response = await router.ask(deadlineSeconds=0.5)
    answer = response.json()
    assert response.status_code == 200, answer
    assert (answer["status"], answer["rows"]) == ("Succeeded", [[3]])
    assert answer["deadlineMet"] is False
    assert any("candidates" in skipped for skipped in answer["skipped"])


async def test_under_finish_a_query_ends_at_the_hard_cap_at_the_latest(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop"), hard_cap_factor=2) as router:
        await router.fault(SLOW)
        response = await router.ask(deadlineSeconds=10)
    answer = response.json()
    assert response.status_code == 504
    assert (answer["status"], answer["reason"]) == ("DeadlineExceeded", "HardCap")
    assert "no answer after 20 seconds" in answer["message"]


async def test_an_engine_that_fails_is_replaced_by_another(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        await router.fault("error:100", instance="a100-0")
        response = await router.ask()
    answer = response.json()
    assert (answer["status"], answer["rows"]) == ("Succeeded", [[3]])
    calls = [call for stage in answer["stages"] for call in stage["calls"]]
    assert {call["instance"] for call in calls} == {"l40s-1"}


@pytest.mark.parametrize("kind", ["html", "json", "empty"])
async def test_an_engine_that_answers_rubbish_ends_the_query_with_a_reason(tmp_path: Path, kind: str) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        await router.fault(f"rubbish:1000:kind={kind}")
        response = await router.ask()
    answer = response.json()
    assert response.status_code == 502
    assert (answer["status"], answer["reason"]) == ("Failed", "Rubbish")
    assert answer["error"]["message"]


async def test_an_engine_that_answers_something_else_ends_the_query_with_a_reason(tmp_path: Path) -> None:
    async def wrong(scope: dict, receive: object, send: object) -> None:  # type: ignore[type-arg]
        models = b'{"object": "list", "data": [{"id": "Qwen/Qwen2.5-Coder-32B-Instruct"}]}'
        body = models if scope["path"] == "/v1/models" else b'{"choices": "none"}'
        status = 404 if scope["path"] == "/metrics" else 200
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": head})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": body})  # type: ignore[operator]

    laptop = a_laptop(tmp_path / "laptop")
    async with a_router(laptop, instances=()) as router, serving(wrong) as url:
        laptop.list_instances({"wrong": ("a100", url)})
        await router.until_ready()
        response = await router.ask()
    assert (response.status_code, response.json()["reason"]) == (502, "Rubbish")


async def test_an_engine_that_cannot_be_reached_ends_the_query_with_a_reason(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    async with a_router(laptop, instances=()) as router:
        laptop.list_instances({"nowhere": ("a100", "http://127.0.0.1:9")})
        ready = await router.client.get("/readyz")
        response = await router.ask(deadlineSeconds=10)
    assert (ready.status_code, ready.json()["reason"]) == (503, "NoInstance")
    answer = response.json()
    assert (response.status_code, answer["status"]) == (503, "Failed")
    assert answer["reason"] in {"NoInstance", "NoInstanceInTime"}


async def test_a_query_waits_for_an_instance_that_comes_in_time(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    async with a_router(laptop) as router:
        laptop.list_instances({})
        await eventually(lambda: not router.router.driver.instances())
        asking = asyncio.create_task(router.ask(deadlineSeconds=300))
        await eventually(lambda: router.router.driver.outstanding == 1)
        laptop.list_instances({name: (name.rpartition("-")[0], url) for name, url in router.engines.items()})
        assert (await asking).json()["rows"] == [[3]]


async def test_a_stopping_router_takes_no_new_query_and_ends_the_running_ones(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop")) as router:
        await router.fault(SLOW)
        asking = asyncio.create_task(router.ask())
        await eventually(lambda: router.router.driver.outstanding == 1)
        draining = asyncio.create_task(router.router.drain(0.3))
        await eventually(lambda: router.router.queries.draining)
        refused = await router.ask()
        call = await router.client.post("/v1/chat/completions", json={"model": "any", "messages": []})
        ready = await router.client.get("/readyz")
        await draining
        stopped = await asking
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "stopping")
    assert refused.headers["retry-after"]
    assert (call.status_code, call.json()["error"]["code"]) == (503, "stopping")
    assert (ready.status_code, ready.json()["reason"]) == (503, "Stopping")
    assert (stopped.status_code, stopped.json()["reason"]) == (503, "Stopping")


async def test_a_connection_cut_in_the_middle_of_a_body_starts_no_query(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop"), instances=()) as router:
        host, port = httpx.URL(router.url).host, httpx.URL(router.url).port
        _, writer = await asyncio.open_connection(host, port)
        writer.write(f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n".encode() + b'{"que')
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.05)
        assert router.router.driver.outstanding == 0
        assert (await router.client.get("/healthz")).status_code == 200
