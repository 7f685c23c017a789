"""Kernels that follow each other, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hexflow_router.configuration import Configuration, arrange
from hexflow_router.driver import Driver
from hexflow_router.succession import PART_SECONDS, Succession, policy_of
from hexflow_router.upstream import Address
from hexflow_scheduler import InstanceState, Relief, decode
from support import virtual_time
from support.asgi import AsgiUpstream
from support.datapath import a_pool, a_request
from support.resources import a_pool as a_gpu_pool
from support.resources import a_secret, a_workflow, resources_of


def play(act: Callable[[Succession, Driver, list[str]], Awaitable[None]]) -> None:
    async def whole() -> None:
        lines: list[str] = []
        succession = Succession(Configuration(), lines.append)
        driver = Driver(succession.kernel, upstream=AsgiUpstream({}), clock=virtual_time.now)
        driver.tell(a_pool().instance("one", state=InstanceState.READY), Address(url="http://one"))
        await act(succession, driver, lines)
        succession.close()
        await driver.close()

    virtual_time.run(whole())


def starts(lines: list[str]) -> int:
    return sum(decode(line).input == "start" for line in lines)


def test_a_new_part_of_the_log_begins_once_an_hour_when_nothing_runs() -> None:
    async def act(succession: Succession, driver: Driver, lines: list[str]) -> None:
        busy = [True]
        renewing = asyncio.create_task(succession.renew(driver, idle=lambda: not busy[0]))
        first = succession.kernel
        await asyncio.sleep(PART_SECONDS + 60)
        assert succession.kernel is first
        busy[0] = False
        await asyncio.sleep(10)
        assert succession.kernel is not first
        assert driver.kernel is succession.kernel
        assert succession.kernel.estimates is first.estimates
        inputs = [decode(line).input for line in lines]
        assert inputs == ["start", "instance", "start", "instance"]
        await asyncio.sleep(PART_SECONDS - 60)
        assert starts(lines) == 2
        await asyncio.sleep(120)
        assert starts(lines) == 3
        renewing.cancel()

    play(act)


def test_no_part_begins_under_a_call() -> None:
    async def act(succession: Succession, driver: Driver, lines: list[str]) -> None:
        async def never(*_: object) -> None:
            await asyncio.Event().wait()

        driver.upstream = AsgiUpstream({"http://one": never})
        (exchange,) = driver.release([a_request()])
        renewing = asyncio.create_task(succession.renew(driver, idle=lambda: True))
        await asyncio.sleep(0)
        first = succession.kernel
        driver.clock = lambda: virtual_time.now() + 2 * PART_SECONDS
        await asyncio.sleep(20)
        assert driver.outstanding == 1
        assert succession.kernel is first
        exchange.cancel()
        await asyncio.sleep(10)
        assert succession.kernel is not first
        renewing.cancel()

    play(act)


def a_configuration(**specs: dict[str, Any]) -> Configuration:
    workflows = [a_workflow(name, **spec) for name, spec in specs.items()]
    return arrange(resources_of(a_gpu_pool(), *workflows, a_secret()), Path("/nowhere"))


ATTAINMENT = {"slo": {"objective": "Attainment"}}
DROPS = {"scheduling": {"dropLateCandidates": True}}


@pytest.mark.parametrize(
    ("specs", "relief"),
    [
        ({}, Relief()),
        ({"a": {}}, Relief()),
        ({"a": ATTAINMENT}, Relief(demote=0.2)),
        ({"a": ATTAINMENT, "b": {}}, Relief()),
        ({"a": DROPS, "b": {}}, Relief(drop=1.3)),
        ({"a": ATTAINMENT | DROPS, "b": ATTAINMENT}, Relief(demote=0.2, drop=1.3)),
    ],
)
def test_relief_is_what_the_workflows_ask_for(specs: dict[str, Any], relief: Relief) -> None:
    assert policy_of(a_configuration(**specs)).relief == relief


def test_another_relief_takes_a_kernel_of_its_own() -> None:
    async def act(succession: Succession, driver: Driver, lines: list[str]) -> None:
        succession.configure(a_configuration(a={}), driver)
        first = succession.kernel
        succession.configure(a_configuration(a=ATTAINMENT), driver)
        assert succession.kernel is not first
        assert succession.kernel.policy.relief.demote > 0
        assert len(succession.kernel.view().instances) == 1

    play(act)
