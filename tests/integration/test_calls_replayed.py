"""The event log of a run through driver and emulators, in virtual time, replayed by the kernel alone.

Minutes of traffic with siblings, failures, cancellations and an instance that goes and comes back.
"""

import asyncio
import contextlib
import random

import pytest

from hexflow_emulator import EmulatorOptions, Fault, Lengths, emulator_app
from hexflow_router.discovery import Discovery
from hexflow_router.driver import Driver
from hexflow_router.exchange import CallFailed, Exchange, UpstreamRequest
from hexflow_router.fleet import PoolSetup
from hexflow_router.watch import ProbeRule
from hexflow_scheduler import Call, Policy, Profile, RecordingKernel, decode, replay
from hexflow_simulator import EngineOptions, EngineOrder
from support import virtual_time
from support.asgi import AsgiUpstream
from support.datapath import BODY, a_pool, watching

QUICK = Profile(t0=0.02, t1=0.0005, t2=1e-7, c1=0.0002, c2=1e-8, kv_tokens=40_000, slots=4)
SLOW = Profile(t0=0.05, t1=0.0008, t2=2e-7, c1=0.0006, c2=2e-8, kv_tokens=30_000, slots=3)
QUERIES = 30
SPEEDS = {"a100": QUICK, "l40s": SLOW, "a6000": SLOW}


def an_emulator(profile: Profile, *faults: str) -> object:
    options = EmulatorOptions(
        model="tiny",
        profile=profile,
        lengths=Lengths.parse("lognormal:60:0.5"),
        engine=EngineOptions(order=EngineOrder.PRIORITY),
        faults=tuple(Fault.parse(fault) for fault in faults),
    )
    return emulator_app(options, clock=virtual_time.now)


def a_fleet(profiles: dict[str, Profile]) -> list[PoolSetup]:
    return [a_pool(name, f"http://{name}", profile=profile) for name, profile in profiles.items()]


async def a_query(driver: Driver, number: int, chance: random.Random) -> list[str]:
    """Make the calls of one query: stages of one to four siblings; return how each call ended."""
    ends: list[str] = []
    arrival = driver.clock()
    for stage, siblings in enumerate((1, 4, 2)):
        requests = [
            UpstreamRequest(
                call=Call(
                    call_id=f"q{number}-{stage}-{sibling}",
                    query_id=f"q{number}",
                    workflow="shop",
                    stage=f"stage-{stage}",
                    model="tiny",
                    prompt_tokens=chance.randint(200, 4000),
                    max_tokens=400,
                    query_arrival=arrival,
                    deadline=arrival + 90,
                    budget_seconds=30.0,
                    sibling=sibling,
                ),
                path="/v1/chat/completions",
                body=BODY.replace(b'"hi"', b'"' + b"word " * chance.randint(200, 3000) + b'"'),
                retry_after_first_byte=True,
            )
            for sibling in range(siblings)
        ]
        exchanges = driver.release(requests)
        if chance.random() < 0.1:
            await asyncio.sleep(chance.random() * 3)
            exchanges[0].cancel()
        ends += [await _end(exchange) for exchange in exchanges]
    return ends


async def _end(exchange: Exchange) -> str:
    try:
        return str((await exchange.read()).status)
    except CallFailed as failed:
        return failed.reason


async def a_run(policy: str, seed: int, lines: list[str]) -> list[str]:
    chance = random.Random(seed)
    upstream = AsgiUpstream({f"http://{name}": an_emulator(profile) for name, profile in SPEEDS.items()})
    driver = Driver(
        RecordingKernel(Policy.named(policy), sink=lines.append), upstream=upstream, clock=virtual_time.now
    )
    discovery = Discovery(driver, probe_rule=ProbeRule(interval_seconds=1.0, gone_after=2))
    discovery.configure(a_fleet(SPEEDS))
    async with watching(discovery):
        await asyncio.sleep(2)
        queries = []
        for number in range(QUERIES):
            queries.append(
                asyncio.ensure_future(a_query(driver, number, random.Random(seed * 1000 + number)))
            )
            await asyncio.sleep(chance.expovariate(1 / 4))
            if number == QUERIES // 3:
                gone = upstream.apps.pop("http://l40s")
            if number == QUERIES // 2:
                upstream.apps["http://l40s"] = gone
            if number == QUERIES * 2 // 3:
                # The fast one, too: a policy may leave the others alone.
                upstream.apps["http://a6000"] = an_emulator(SLOW, "error-rate:0.3")
                upstream.apps["http://a100"] = an_emulator(QUICK, "error-rate:0.1")
        ends = [end for query in queries for end in await query]
    await driver.close()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    return ends


@pytest.mark.parametrize("policy", ["LeastHarm", "HexGenFlow", "RoundRobin", "LeastOutstanding+Urgency"])
def test_a_recorded_run_replayed_by_the_kernel_alone_decides_the_same(policy: str) -> None:
    lines: list[str] = []
    ends = virtual_time.run(a_run(policy, 7, lines))
    assert len(ends) == QUERIES * 7  # every call ended, each once
    assert set(ends) <= {"200", "Cancelled", "EngineError"}
    assert ends.count("200") > 0.9 * len(ends)
    replayed = replay(decode(line) for line in lines)
    assert replayed.difference is None, str(replayed.difference)
    assert replayed.inputs == len(lines) - 1
    inputs = {decode(line).input for line in lines}
    assert inputs >= {"instance", "arrive", "finished", "failed", "cancel"}


def test_the_same_run_in_virtual_time_writes_the_same_log() -> None:
    first: list[str] = []
    second: list[str] = []
    virtual_time.run(a_run("HexGenFlow", 3, first))
    virtual_time.run(a_run("HexGenFlow", 3, second))
    assert first == second
