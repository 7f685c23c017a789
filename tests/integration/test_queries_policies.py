"""Every policy takes a query from the question to its rows, and the kernel is told of every query's end."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hexflow_scheduler.policy import DISPATCH_RULES, QUEUE_RULES
from support import virtual_time
from support.questions import asked
from support.router import UNKNOWN_QUESTION, RunningRouter, a_laptop, a_router
from support.waiting import eventually

FROZEN = "freeze:100000"
LATER = {"prefer": "respond-async"}


def endings(lines: list[str]) -> list[tuple[str, bool]]:
    """Return the ends of queries that a log says the kernel was told of."""
    records = [json.loads(line) for line in lines]
    told = [record["with"] for record in records if record["input"] == "query_ended"]
    return [(each["query_id"], each["answered"]) for each in told]


@pytest.mark.parametrize("policy", [*DISPATCH_RULES, *(f"LeastOutstanding+{queue}" for queue in QUEUE_RULES)])
def test_every_policy_takes_queries_to_their_rows(tmp_path: Path, policy: str) -> None:
    lines: list[str] = []
    went = virtual_time.run(asked(tmp_path, lines, policy=policy, count=2, seconds_between=1.0))
    assert [each.status for each in went] == ["Succeeded", "Succeeded"]
    assert sorted(endings(lines)) == [("q0", True), ("q1", True)]


async def answer(router: RunningRouter) -> None:
    await router.ask()


async def fail(router: RunningRouter) -> None:
    response = await router.ask(UNKNOWN_QUESTION)
    assert response.json()["status"] == "Failed"


async def cancel(router: RunningRouter) -> None:
    await router.fault(FROZEN)
    address = (await router.ask(headers=LATER)).headers["location"]
    await eventually(lambda: router.router.driver.outstanding > 0)
    await router.client.delete(address)


async def abort(router: RunningRouter) -> None:
    await router.fault(FROZEN)
    assert (await router.ask(deadlineSeconds=10)).status_code == 504


async def drain(router: RunningRouter) -> None:
    await router.fault(FROZEN)
    await router.ask(headers=LATER)
    await eventually(lambda: router.router.driver.outstanding > 0)
    await router.router.queries.drain(0.0)


@pytest.mark.parametrize(
    ("end", "answered"),
    [(answer, True), (fail, False), (cancel, False), (abort, False), (drain, False)],
)
async def test_the_kernel_is_told_of_a_querys_end_whatever_it_is(
    tmp_path: Path, end: Callable[[RunningRouter], Awaitable[None]], answered: bool
) -> None:
    async with a_router(a_laptop(tmp_path / "laptop", slo={"onDeadline": "Abort"})) as router:
        await end(router)

        async def told() -> list[tuple[str, bool]]:
            return endings((await router.admin.get("/v1/events")).text.splitlines())

        await eventually(told)
        ((query_id, said),) = await told()
        assert said is answered
        assert router.router.succession.kernel.view().open_queries == 0
        assert router.router.queries.get(query_id) is not None
