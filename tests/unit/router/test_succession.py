"""Kernels that follow each other, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

from hexflow_router.configuration import Configuration
from hexflow_router.driver import Driver
from hexflow_router.succession import PART_SECONDS, Succession
from hexflow_router.upstream import Address
from hexflow_scheduler import InstanceState, decode
from support import virtual_time
from support.asgi import AsgiUpstream
from support.datapath import a_pool, a_request


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
