"""What decodes: jumps to the next end, blocks as they are needed, and runs that leave early."""

import pytest

from hexflow_simulator.batch import DecodeBatch
from hexflow_simulator.run import Run
from support.engine_model import a_request

PLENTY = 10**9


def a_run(name: str = "a", *, prompt: int = 16, output: int = 10, written: int = 1) -> Run:
    """Return a run that has its first token, as when its prefill is done."""
    run = Run(request=a_request(name, prompt=prompt, output=output), sequence=0, submitted=0.0, key=(0, 0))
    run.generated = written
    return run


def a_batch(*runs: Run, block_tokens: int = 16) -> DecodeBatch:
    batch = DecodeBatch(block_tokens=block_tokens)
    for run in runs:
        batch.enter(run)
    return batch


def test_it_jumps_to_the_next_end() -> None:
    batch = a_batch(a_run("long", output=30), a_run("short", output=5))
    assert batch.jump(free_blocks=PLENTY) == 4
    batch.take(4)
    assert [run.request.request_id for run in batch.ended()] == ["short"]
    assert batch.jump(free_blocks=PLENTY) == 25


def test_runs_that_end_together_leave_together() -> None:
    batch = a_batch(a_run("a", output=7), a_run("b", output=7))
    batch.take(6)
    assert {run.request.request_id for run in batch.ended()} == {"a", "b"}
    assert len(batch) == batch.context == 0


def test_context_grows_by_a_token_a_run_and_step() -> None:
    batch = a_batch(a_run("a", prompt=100), a_run("b", prompt=50))
    assert batch.context == 152
    batch.take(3)
    assert batch.context == 158


@pytest.mark.parametrize("prompt", range(1, 40))
def test_blocks_grow_exactly_as_the_tokens_fill_them(prompt: int) -> None:
    batch = a_batch(a_run(prompt=prompt, output=100), block_tokens=16)
    has = -(-(prompt + 1) // 16)
    for steps in range(50):
        assert batch.growth(steps) == -(-(prompt + 1 + steps) // 16) - has


def test_a_jump_stops_where_blocks_run_out() -> None:
    batch = a_batch(a_run("a", prompt=15, output=100), a_run("b", prompt=15, output=100))
    assert batch.growth(1) == 2
    assert batch.jump(free_blocks=2) == 16
    assert batch.jump(free_blocks=3) == 16
    assert batch.jump(free_blocks=4) == 32


def test_a_run_that_leaves_early_keeps_what_it_has_written() -> None:
    run, other = a_run("a", output=20), a_run("b", output=40)
    batch = a_batch(run, other)
    batch.take(5)
    batch.leave(run)
    assert (run.generated, run.entered) == (6, -1)
    assert batch.jump(free_blocks=PLENTY) == 34
    batch.enter(run)
    assert batch.jump(free_blocks=PLENTY) == 14


def test_a_cancelled_run_never_ends() -> None:
    run, other = a_run("a", output=5), a_run("b", output=9)
    batch = a_batch(run, other)
    run.gone = True
    batch.leave(run)
    assert batch.jump(free_blocks=PLENTY) == 8
    batch.take(8)
    assert [each.request.request_id for each in batch.ended()] == ["b"]
