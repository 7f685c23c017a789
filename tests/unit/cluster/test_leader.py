import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from hexflow_cluster import (
    ClusterError,
    Conflict,
    Leadership,
    LeadershipLost,
    LeaseRecord,
    LeaseTimes,
    Unavailable,
)
from support.virtual_time import now, run

TIMES = LeaseTimes(duration_seconds=30)


class FakeLease:
    """A Lease as the API server keeps it: a version that every write must know."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.writes: list[tuple[float, str]] = []
        self.fault: ClusterError | None = None
        self.lost_answer = False

    async def read(self) -> LeaseRecord | None:
        await asyncio.sleep(0.01)
        if self.fault:
            raise self.fault
        return self.record

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        await asyncio.sleep(0.01)
        if self.fault:
            raise self.fault
        if record.version != (self.record.version if self.record else ""):
            raise Conflict("the object has been modified")
        self.writes.append((time(), record.holder))
        self.record = replace(record, version=str(len(self.writes)))
        if self.lost_answer:
            self.lost_answer = False
            raise Unavailable("the answer was lost")
        return self.record


def time() -> float:
    return asyncio.get_running_loop().time()


def leadership(lease: FakeLease, identity: str) -> Leadership:
    return Leadership(lease, identity=identity, clock=time, wall=now, times=TIMES, chance=lambda: 0.5)


def virtually(work: Coroutine[Any, Any, None]) -> None:
    run(work)


def test_the_first_leads_at_once_and_renews() -> None:
    async def work() -> None:
        lease = FakeLease()
        a = leadership(lease, "a")
        await a.acquire()
        assert time() < 1
        holding = asyncio.create_task(a.hold())
        await asyncio.sleep(21)
        holding.cancel()
        assert [holder for _, holder in lease.writes] == ["a"] * 5
        await a.confirm()
        assert len(lease.writes) == 5, "a write right after a renewal costs nothing"
        assert lease.record
        assert (lease.record.acquired < lease.record.renewed, lease.record.transitions) == (True, 0)

    virtually(work())


def test_the_second_waits_while_the_first_lives_and_takes_over_when_it_is_gone() -> None:
    async def work() -> None:
        lease = FakeLease()
        a, b = leadership(lease, "a"), leadership(lease, "b")
        await a.acquire()
        holding = asyncio.create_task(a.hold())
        waiting = asyncio.create_task(b.acquire())
        await asyncio.sleep(300)
        assert not waiting.done()
        holding.cancel()  # killed: nothing is given up
        died = time()
        await waiting
        assert 20 < time() - died < 35
        assert lease.record
        assert lease.record.transitions == 1

    virtually(work())


def test_who_leaves_in_order_hands_over_at_once() -> None:
    async def work() -> None:
        lease = FakeLease()
        a, b = leadership(lease, "a"), leadership(lease, "b")
        await a.acquire()
        waiting = asyncio.create_task(b.acquire())
        await asyncio.sleep(10)
        await a.release()
        left = time()
        await waiting
        assert time() - left < 3
        with pytest.raises(LeadershipLost):
            await a.confirm()

    virtually(work())


def test_a_leader_that_was_frozen_looks_at_its_lease_before_it_writes() -> None:
    async def work() -> None:
        lease = FakeLease()
        a, b = leadership(lease, "a"), leadership(lease, "b")
        await a.acquire()  # and then it is stopped: it does not even renew
        await b.acquire()
        with pytest.raises(LeadershipLost, match="b holds the lease"):
            await a.confirm()
        await b.confirm()

    virtually(work())


def test_a_leader_that_was_frozen_for_a_moment_renews_and_goes_on() -> None:
    async def work() -> None:
        lease = FakeLease()
        a = leadership(lease, "a")
        await a.acquire()
        await asyncio.sleep(20)
        await asyncio.gather(*(a.confirm() for _ in range(10)))
        assert len(lease.writes) == 2, "ten writes that wait for the same renewal make one"

    virtually(work())


def test_a_leader_whose_lease_cannot_be_renewed_ends_before_another_may_begin() -> None:
    async def work() -> None:
        lease = FakeLease()
        a = leadership(lease, "a")
        await a.acquire()
        holding = asyncio.create_task(a.hold())
        await asyncio.sleep(11)
        last = lease.writes[-1][0]
        lease.fault = Unavailable("the API server is down")
        with pytest.raises(LeadershipLost):
            await holding
        assert time() - last < TIMES.duration_seconds - 10
        with pytest.raises(LeadershipLost):
            await a.confirm()

    virtually(work())


def test_a_short_fault_of_the_api_server_does_not_end_leading() -> None:
    async def work() -> None:
        lease = FakeLease()
        a = leadership(lease, "a")
        await a.acquire()
        holding = asyncio.create_task(a.hold())
        await asyncio.sleep(6)
        lease.fault = Unavailable("down")
        await asyncio.sleep(8)
        lease.fault = None
        await asyncio.sleep(20)
        assert not holding.done()
        holding.cancel()

    virtually(work())


def test_a_renewal_whose_answer_was_lost_is_no_loss() -> None:
    async def work() -> None:
        lease = FakeLease()
        a = leadership(lease, "a")
        await a.acquire()
        holding = asyncio.create_task(a.hold())
        lease.lost_answer = True
        await asyncio.sleep(30)
        assert not holding.done()
        holding.cancel()

    virtually(work())


def test_a_leader_stops_trusting_and_its_last_write_ends_before_another_may_begin() -> None:
    assert TIMES.trusted_seconds + TIMES.write_seconds < TIMES.duration_seconds
    assert TIMES.renew_seconds + 2 * TIMES.retry_seconds < TIMES.trusted_seconds


def test_of_many_that_begin_at_once_one_leads() -> None:
    async def work() -> None:
        lease = FakeLease()
        waiting = [asyncio.create_task(leadership(lease, name).acquire()) for name in "abcde"]
        await asyncio.sleep(20)
        assert sum(task.done() for task in waiting) == 1
        assert len(lease.writes) == 1
        for task in waiting:
            task.cancel()

    virtually(work())


def test_who_waits_says_nothing_against_an_api_server_that_is_down() -> None:
    async def work() -> None:
        lease = FakeLease()
        lease.fault = Unavailable("down")
        waiting = asyncio.create_task(leadership(lease, "a").acquire())
        await asyncio.sleep(60)
        assert not waiting.done()
        lease.fault = None
        await waiting

    virtually(work())
