"""Everything goes wrong at once, by a seeded dice; every query ends, and nothing is left behind."""

import asyncio
import contextlib
import random
from pathlib import Path

import httpx
import pytest

from support.router import (
    QUESTION,
    RIGHT,
    WORKFLOW,
    WRONG_COLUMN,
    WRONG_ROWS,
    RunningRouter,
    a_laptop,
    a_router,
    an_entry,
)
from support.waiting import eventually

PATH = f"/v1/workflows/{WORKFLOW}/queries"
FAULTS = (
    ("error-rate:0.2",),
    ("error:3:status=429",),
    ("abort:2",),
    ("cut:2",),
    ("rubbish:1:kind=json", "rubbish:1:kind=html"),
    ("freeze:5",),
    ("slow:3",),
    (),
)


async def one_client(router: RunningRouter, dice: random.Random) -> str:
    """Ask in one of the ways there are, perhaps leave, and return how the query ended."""
    await asyncio.sleep(dice.random() * 0.5)
    body = {"question": QUESTION, "deadlineSeconds": dice.choice([5, 60, 600])}
    match dice.randrange(4):
        case 0:
            return str((await router.client.post(PATH, json=body)).json()["status"])
        case 1:
            patience = dice.random() * 0.3
            with contextlib.suppress(TimeoutError, httpx.ReadError):
                async with asyncio.timeout(patience):
                    return str((await router.client.post(PATH, json=body)).json()["status"])
            return "left"
        case 2:
            with contextlib.suppress(httpx.ReadError):
                async with router.client.stream("POST", PATH, json=body | {"stream": True}) as response:
                    async for line in response.aiter_lines():
                        if line == "event: stage.finished" and dice.random() < 0.5:
                            return "left"
            return "watched"
        case _:
            accepted = await router.client.post(PATH, json=body, headers={"prefer": "respond-async"})
            address = accepted.headers["location"]
            if dice.random() < 0.5:
                await asyncio.sleep(dice.random() * 0.2)
                return str((await router.client.delete(address)).json()["status"])

            async def ended() -> bool:
                return bool((await router.client.get(address)).json()["status"] != "Running")

            await eventually(ended, seconds=30)
            return str((await router.client.get(address)).json()["status"])


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_query_ends_and_nothing_is_left_behind(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    laptop = a_laptop(
        tmp_path / "laptop", an_entry(candidates=(WRONG_COLUMN, RIGHT, WRONG_ROWS, RIGHT), corrected=RIGHT)
    )
    instances = ("a100", "a100", "l40s", "l40s")
    async with a_router(laptop, time_scale=100, instances=instances) as router:
        clients = [asyncio.create_task(one_client(router, random.Random(seed * 1000 + n))) for n in range(40)]
        while not all(client.done() for client in clients):
            for name in router.engines:
                await router.fault(*dice.choice(FAULTS), instance=name)
            await asyncio.sleep(0.1)
        endings = [client.result() for client in clients]
        await router.fault()
        await eventually(lambda: router.router.driver.outstanding == 0)

        async def idle() -> bool:
            return await router.busy() == 0 and await router.metric("hexflow_queries_running") == 0

        await eventually(idle)
        queries = router.router.queries
        ended = await router.metric("hexflow_queries_total")
        answer = await router.ask()
    assert "Running" not in endings
    assert "Succeeded" in endings
    # A client may leave before its question has come.
    assert 40 - endings.count("left") <= ended <= 40
    assert not queries._running
    assert not queries._tasks
    assert answer.json()["rows"] == [[3]]
