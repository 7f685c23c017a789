import asyncio

import pytest

from hexflow_cluster import Busy, ClusterError, Conflict, Retries, Unavailable
from support.virtual_time import run


async def trying(retries: Retries, *outcomes: ClusterError | None) -> tuple[int, float]:
    """Run a request that fails as told and then succeeds; return the tries and the virtual seconds taken."""
    left = list(outcomes)
    tries = 0
    async for attempt in retries.attempting():
        with attempt:
            tries += 1
            if left and (error := left.pop(0)) is not None:
                raise error
    return tries, asyncio.get_running_loop().time()


def test_what_may_pass_is_tried_again_after_a_short_jittered_pause() -> None:
    tries, seconds = run(trying(Retries(), Unavailable("down"), Busy("slow down")))
    assert tries == 3
    assert 0 < seconds <= 0.2 + 0.4


def test_the_pause_that_the_api_server_asks_for_is_kept_within_a_bound() -> None:
    _, seconds = run(trying(Retries(), Busy("slow down", retry_after=3.0)))
    assert 3.0 <= seconds <= 3.2
    _, seconds = run(trying(Retries(longest_seconds=5.0), Busy("slow down", retry_after=3600.0)))
    assert seconds == 5.0


def test_the_last_error_comes_out_as_it_is() -> None:
    with pytest.raises(Unavailable, match="fourth"):
        run(trying(Retries(attempts=4), *(Unavailable(word) for word in ("1st", "2nd", "3rd", "fourth"))))


def test_what_another_try_does_not_help_is_not_tried_again() -> None:
    with pytest.raises(Conflict):
        run(trying(Retries(), Conflict("somebody else was faster")))
