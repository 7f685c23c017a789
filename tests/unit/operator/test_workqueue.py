import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from hexflow_operator.workqueue import Backoff, WorkQueue
from support.virtual_time import run


def at(work: Callable[[WorkQueue[str]], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def in_loop() -> None:
        await work(WorkQueue(chance=lambda: 1.0, **settings))

    run(in_loop())


def now() -> float:
    return round(asyncio.get_running_loop().time(), 6)


def test_a_key_that_is_added_often_is_handed_out_once() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        for key in ("a", "b", "a", "a"):
            queue.add(key)
        assert len(queue) == 2
        assert [await queue.take(), await queue.take()] == ["a", "b"]
        assert now() == 0

    at(work)


def test_a_key_that_changes_while_it_is_worked_on_comes_again_and_never_to_a_second_worker() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        queue.add("a")
        key = await queue.take()
        queue.add("a")
        second = asyncio.create_task(queue.take())
        await asyncio.sleep(5)
        assert not second.done()
        queue.finish(key)
        assert await second == "a"

    at(work)


def test_a_key_that_changes_all_the_time_is_worked_on_once_in_a_while() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        starts = []
        queue.add("a")
        while now() < 3.5:
            key = await queue.take()
            starts.append(now())
            queue.add("a")
            queue.finish(key)
        assert starts == [0.0, 1.0, 2.0, 3.0, 4.0]

    at(work, spacing_seconds=1.0)


def test_a_change_after_a_rest_is_worked_on_at_once() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.finish(await queue.take())
        await asyncio.sleep(10)
        queue.add("a")
        await queue.take()
        assert now() == 10

    at(work, spacing_seconds=1.0)


def test_who_failed_waits_longer_each_time_and_a_success_ends_that() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        queue.add("a")
        pauses = []
        for _ in range(5):
            key = await queue.take()
            pauses.append(queue.fail(key))
        assert pauses == [0.5, 1.0, 2.0, 4.0, 4.0]
        assert now() == sum(pauses[:-1])
        queue.finish(await queue.take())
        queue.add("a")
        await queue.take()
        assert queue.fail("a") == 0.5

    at(work, backoff=Backoff(first_seconds=0.5, longest_seconds=4.0), spacing_seconds=0.0)


def test_a_change_does_not_shorten_the_pause_after_a_failure() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.fail(await queue.take())
        queue.add("a")
        await queue.take()
        assert now() == 8

    at(work, backoff=Backoff(first_seconds=8.0), spacing_seconds=0.0)


def test_who_is_pardoned_is_not_kept_waiting_and_fails_as_for_the_first_time() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        queue.add("a")
        for _ in range(3):
            queue.fail(await queue.take())
        queue.pardon("a")
        began = now()
        queue.add("a")
        await queue.take()
        assert now() == began
        assert queue.fail("a") == 8.0

    at(work, backoff=Backoff(first_seconds=8.0), spacing_seconds=0.0)


def test_pauses_are_spread_so_that_not_all_come_back_at_once() -> None:
    backoff = Backoff(first_seconds=1.0, longest_seconds=60.0)
    assert (backoff.pause(1, 0.0), backoff.pause(1, 1.0)) == (0.5, 1.0)
    assert backoff.pause(1_000_000, 1.0) == 60.0


def test_looking_again_later_yields_to_a_change_before() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.finish(await queue.take(), again_after=60)
        assert len(queue) == 0
        await asyncio.sleep(20)
        queue.add("a")
        queue.finish(await queue.take(), again_after=60)
        assert now() == 20
        await queue.take()
        assert now() == 80, "the look at 60 was taken back by the one at 20"

    at(work, spacing_seconds=0.0)


def test_a_key_that_is_forgotten_is_not_looked_at_again() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        queue.add("a")
        queue.finish(await queue.take(), again_after=60)
        queue.forget("a")
        queue.add_after("b", 100)
        assert await queue.take() == "b"

    at(work)


def test_several_workers_share_the_keys_and_the_oldest_work_is_known() -> None:
    async def work(queue: WorkQueue[str]) -> None:
        running: set[str] = set()
        most = 0

        async def do(key: str) -> None:
            nonlocal most
            running.add(key)
            most = max(most, len(running))
            await asyncio.sleep(7)
            running.discard(key)
            queue.finish(key)

        workers = [asyncio.create_task(queue.work(do)) for _ in range(3)]
        for key in "abcd":
            queue.add(key)
        await asyncio.sleep(3)
        assert queue.longest_active_seconds() == 3
        await asyncio.sleep(12)
        assert (most, len(queue), queue.longest_active_seconds()) == (3, 0, 0.0)
        for task in workers:
            task.cancel()

    at(work)
