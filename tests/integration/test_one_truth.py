"""What a router went through and what the simulator makes of its event log: one kernel, one engine, one truth.

The run in real time compares nothing where the machine was too busy to keep time, and is left out with the reason
then: so it is no gate, and worth something alone on a quiet machine only.

The queries are those of the log, with the lengths that the engines counted; the simulator runs them against the
fleet that the log names, as fast as its profiles say (which are true of emulated instances), beginning as cold
as the router did.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from hexflow_scheduler import decode, replay
from hexflow_simulator import simulate
from hexflow_simulator.eventimport import read_event_log
from hexflow_simulator.measure import percentile
from hexflow_simulator.observing import look
from support import virtual_time
from support.questions import KINDS, Asked, an_entry, asked, question
from support.router import a_laptop, a_router

QUESTIONS = 500
SCALE = 4.0
"""Of real time: HTTP and SQLite, which no scale makes faster, take so many times as long in emulated seconds."""
REAL_QUESTIONS = 40
SECONDS_BETWEEN = 3.0
REAL_SECONDS = 200.0
"""For an answer, which takes some seconds on a quiet machine."""
MOST_LATE = 0.005
"""Mean seconds by which a timer may come late. Dozens are in each answer, and what is late is late four times as much."""


@dataclass(slots=True)
class Timers:
    """Measure how late timers come: what a machine that computes other things adds to every step of an answer."""

    late: list[float] = field(default_factory=list)

    async def watch(self) -> None:
        """Set one after the other until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + 0.05
            await asyncio.sleep(0.05)
            self.late.append(loop.time() - due)


def predicted(log: Path) -> dict[str, float]:
    """Return the seconds that the simulator takes for each query of a log."""
    seen = look(log)
    fleet = [replace(each, profile=None) for each in seen.fleet]
    result = simulate(read_event_log(log), fleet, seen.policy, parameters=seen.parameters)
    return {query.query_id: query.latency for query in result.queries if query.latency is not None}


def assert_close(observed: dict[str, float], log: Path, *, median: float, tail: float) -> None:
    """Hold the prediction to shares of what was observed."""
    simulated = predicted(log)
    assert simulated.keys() == observed.keys()
    for share, within in ((0.5, median), (0.95, tail)):
        expected = percentile(observed.values(), share)
        found = percentile(simulated.values(), share)
        assert found == pytest.approx(expected, rel=within), share


@pytest.mark.timeout(400)  # it computes all the time: 14 seconds where it is alone
@pytest.mark.parametrize(("policy", "count"), [("LeastHarm", QUESTIONS), ("RoundRobin", 250)])
def test_hundreds_of_questions_are_decided_and_timed_alike(policy: str, count: int, tmp_path: Path) -> None:
    lines: list[str] = []
    went: list[Asked] = virtual_time.run(
        asked(tmp_path, lines, policy=policy, count=count, seconds_between=1.0)
    )
    assert {each.status for each in went} == {"Succeeded"}
    replayed = replay(decode(line) for line in lines)
    assert replayed.difference is None, str(replayed.difference)
    assert replayed.inputs == len(lines) - 1
    log = tmp_path / "events.jsonl"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert_close({each.query_id: each.seconds for each in went}, log, median=0.05, tail=0.10)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_short_run_in_real_time_takes_what_the_simulator_says(tmp_path: Path) -> None:
    entries = [an_entry(number) for number in range(KINDS)]
    laptop = a_laptop(tmp_path, *entries, slo={"deadlineSeconds": 120})
    log = tmp_path / "events.jsonl"
    chance = Random(4)
    observed: dict[str, float] = {}
    async with a_router(
        laptop, "--tensor-parallel-size", "2", instances=("a100", "a100"), time_scale=SCALE, event_log=log
    ) as running:

        async def ask(number: int) -> None:
            answer = (await running.ask(question(number))).json()
            assert answer["status"] == "Succeeded", answer["message"]
            observed[answer["id"]] = answer["seconds"]

        running.client.timeout = REAL_SECONDS
        timers = Timers()
        watching = asyncio.ensure_future(timers.watch())
        asking = []
        for number in range(REAL_QUESTIONS):
            await asyncio.sleep(chance.expovariate(SCALE / SECONDS_BETWEEN))
            asking.append(asyncio.ensure_future(ask(number)))
        await asyncio.gather(*asking)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    assert replay(decode(line) for line in log.read_text().splitlines()).difference is None
    if fmean(timers.late) > MOST_LATE:
        pytest.skip(
            f"timers came {1000 * fmean(timers.late):.0f} ms late on average, so real time says nothing: "
            "run this alone, on a machine that does nothing else"
        )
    assert_close(observed, log, median=0.10, tail=0.20)
