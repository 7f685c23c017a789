"""What a stage is expected to take follows the fleet and what is learned, at once."""

import pytest

from hexflow_scheduler import Kernel, Policy
from support.calls import FAST, MODEL, SLOW, a_call, an_instance, gone, usage


def seconds(kernel: Kernel, pools: frozenset[str] | None = None) -> float:
    return kernel.stage_seconds("w", "draft", MODEL, pools)


def test_it_is_the_mean_over_the_instances_that_could_serve_it() -> None:
    kernel = Kernel(Policy.named("RoundRobin"))
    assert seconds(kernel) == 0.0
    kernel.instance(0.0, an_instance("a"))
    alone = seconds(kernel)
    assert alone == pytest.approx(FAST.prefill_seconds(4000) + FAST.decode_seconds(4000, 400))
    kernel.instance(0.0, an_instance("b", profile=SLOW, pool="slow"))
    assert seconds(kernel) == pytest.approx(1.5 * alone)
    assert seconds(kernel, frozenset({"slow"})) == pytest.approx(2 * alone)
    assert seconds(kernel, frozenset({"other"})) == 0.0
    kernel.instance(1.0, gone("b"))
    assert seconds(kernel) == pytest.approx(alone)


def test_a_speed_that_is_learned_counts_from_the_next_question_on() -> None:
    kernel = Kernel(Policy.named("RoundRobin"))
    kernel.instance(0.0, an_instance("a"))
    before = seconds(kernel)
    kernel.arrive(0.0, [a_call()])
    kernel.finished(6.0, "c", usage())  # twice as long as its profile says
    assert seconds(kernel) == pytest.approx(before * 2**0.1)
