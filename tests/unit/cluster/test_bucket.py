import asyncio

from hexflow_cluster import TokenBucket
from support.virtual_time import run


async def passing(bucket: TokenBucket, count: int) -> list[float]:
    """Return when each of ``count`` callers, all there at once, was let through."""
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def one() -> None:
        await bucket.take()
        times.append(round(loop.time(), 6))

    await asyncio.gather(*(one() for _ in range(count)))
    return times


def test_a_burst_passes_at_once_and_the_rest_at_the_rate() -> None:
    times = run(passing(TokenBucket(rate=10, burst=3), 6))
    assert times == [0.0, 0.0, 0.0, 0.1, 0.2, 0.3]


def test_what_was_not_used_does_not_add_up_beyond_the_burst() -> None:
    async def work() -> list[float]:
        bucket = TokenBucket(rate=10, burst=2)
        await passing(bucket, 2)
        await asyncio.sleep(100)
        return [round(at - 100, 6) for at in await passing(bucket, 3)]

    assert run(work()) == [0.0, 0.0, 0.1]


def test_who_gives_up_waiting_leaves_the_token_to_others() -> None:
    async def work() -> float:
        bucket = TokenBucket(rate=1, burst=1)
        await bucket.take()
        waiting = [asyncio.create_task(bucket.take()) for _ in range(5)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await bucket.take()
        return asyncio.get_running_loop().time()

    assert run(work()) == 1.0
