import asyncio

import aiohttp
import pytest

from hexflow_operator.health import Health, serve
from hexflow_operator.metrics import Metrics


def a_health(*, longest: float = 0.0, missed: int = 0, lag: float = 0.0) -> Health:
    return Health(longest_reconcile_seconds=lambda: longest, missed_in_a_row=missed, lag_seconds=lag)


@pytest.mark.parametrize(
    ("health", "word"),
    [
        (a_health(longest=301.0), "301 s"),
        (a_health(missed=2), "no watch told of"),
        (a_health(lag=31.0), "late"),
    ],
)
def test_who_hangs_or_hears_nothing_wants_to_be_started_anew(health: Health, word: str) -> None:
    assert [word in problem for problem in health.problems()] == [True]


def test_what_an_outage_leaves_behind_is_no_reason_to_start_anew() -> None:
    assert a_health(longest=299.0, missed=1, lag=1.0).problems() == []


async def test_the_probes_and_the_metrics_are_answered() -> None:
    health, metrics = a_health(), Metrics()
    runner = await serve(
        health,
        metrics,
        host="127.0.0.1",
        port=0,
        measure=lambda: metrics.set("hexflow_operator_queue_length", 3),
    )
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with aiohttp.ClientSession() as session:

            async def status(path: str) -> int:
                async with session.get(url + path) as answer:
                    return answer.status

            assert tuple(await asyncio.gather(status("/healthz"), status("/readyz"))) == (200, 503)
            health.reached, health.missed_in_a_row = True, 2
            assert tuple(await asyncio.gather(status("/healthz"), status("/readyz"))) == (503, 200)
            async with session.get(url + "/metrics") as answer:
                assert "hexflow_operator_queue_length 3.0" in await answer.text()
    finally:
        await runner.cleanup()
