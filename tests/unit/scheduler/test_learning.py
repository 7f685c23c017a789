import pytest

from hexflow_scheduler import Kernel, Policy, PrefixBlock, Profile, Speed
from support.calls import a_call, an_instance, calls, usage

BATCHED = Profile(t0=0.01, t1=0.01, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=8)
"""A step takes 10 ms and 10 ms for each sequence: 100 tokens alone take 2 s, among two 3 s."""


def a_kernel() -> Kernel:
    kernel = Kernel(Policy.named("RoundRobin"))
    kernel.instance(0.0, an_instance(profile=BATCHED))
    return kernel


def learned(kernel: Kernel) -> Speed:
    return kernel.view().instances[0].speed


def test_an_instance_that_keeps_its_profile_stays_at_one() -> None:
    kernel = a_kernel()
    kernel.arrive(0.0, [a_call()])
    kernel.finished(3.0, "c", usage())
    assert (learned(kernel).prefill, learned(kernel).decode) == pytest.approx((1.0, 1.0))


def test_one_that_takes_twice_as_long_moves_both_factors() -> None:
    kernel = a_kernel()
    kernel.arrive(0.0, [a_call()])
    kernel.finished(6.0, "c", usage())
    assert (learned(kernel).prefill, learned(kernel).decode) == pytest.approx((2**0.1, 2**0.1))


def test_the_time_of_the_first_token_changes_nothing() -> None:
    def scales(first_token_seconds: float | None) -> tuple[float, float]:
        kernel = a_kernel()
        kernel.arrive(0.0, [a_call()])
        kernel.finished(6.0, "c", usage(first_token_seconds=first_token_seconds))
        return learned(kernel).prefill, learned(kernel).decode

    assert scales(1.0) == scales(5.9) == scales(None)


def test_the_batch_it_ran_in_is_no_slowness() -> None:
    kernel = a_kernel()
    # Alone for 1 s, then among two, whose prompt stops it for 1 s.
    kernel.arrive(0.0, [a_call("long")])
    kernel.arrive(1.0, [a_call("other")])
    kernel.finished(4.75, "long", usage())
    mean = 1 + 3.75 / 4.75
    expected = 1.0 + 1.0 + 100 * (0.01 + 0.01 * mean)
    assert learned(kernel).decode == pytest.approx((4.75 / expected) ** 0.1)


def test_tokens_that_were_cached_are_not_taken_for_speed() -> None:
    kernel = a_kernel()
    kernel.arrive(0.0, [a_call()])
    # 500 tokens less to prefill
    kernel.finished(2.5, "c", usage(cached_tokens=500))
    assert learned(kernel).prefill == pytest.approx(1.0)


def test_one_stalled_call_counts_as_two_and_a_half_times_too_slow_at_most() -> None:
    kernel = a_kernel()
    kernel.arrive(0.0, [a_call()])
    kernel.finished(3000.0, "c", usage())
    assert learned(kernel).decode == pytest.approx(2.5**0.1)


def test_an_instance_at_half_speed_is_known_within_a_quarter_after_twenty_calls() -> None:
    kernel = a_kernel()
    for number in range(20):
        kernel.arrive(6.0 * number, [a_call(f"c{number}")])
        kernel.finished(6.0 * (number + 1), f"c{number}", usage())
    assert learned(kernel).decode == pytest.approx(2.0, rel=0.25)


def test_a_prompt_that_turns_out_not_to_be_cached_explains_what_it_cost_the_others() -> None:
    def scale(*, cached_tokens: int | None) -> float:
        kernel = a_kernel()
        block = (PrefixBlock(key="schema", tokens=900),)
        kernel.arrive(0.0, [a_call("first", prefix=block)])
        kernel.arrive(0.0, [a_call("second", prefix=block), a_call("third", prefix=block)])
        kernel.finished(6.0, "second", usage(cached_tokens=cached_tokens))
        before = learned(kernel).decode
        kernel.finished(6.0, "third", usage())
        return learned(kernel).decode / before

    assert scale(cached_tokens=0) < scale(cached_tokens=None)


def test_calls_that_wait_for_one_prefill_together_do_not_teach_it_over_and_over() -> None:
    # Twenty prompts of a second each take two on an instance at half speed, and their short calls end together.
    kernel = a_kernel()
    kernel.arrive(0.0, calls(20, max_tokens=1))
    for number in range(20):
        kernel.finished(42.0, f"c{number}", usage(1))
    assert 1.5 < learned(kernel).prefill < 2.1


def test_no_time_at_all_teaches_nothing() -> None:
    kernel = a_kernel()
    kernel.arrive(0.0, calls(2))
    kernel.finished(0.0, "c0", usage(0))
    assert learned(kernel) == Speed(BATCHED)


def test_what_was_learned_of_a_lost_instance_is_forgotten() -> None:
    kernel = a_kernel()
    kernel.estimates.timed("a", prefill=2.0, decode=2.0)
    kernel.instance(1.0, an_instance(state=kernel.view().instances[0].instance.state.GONE))
    assert kernel.estimates.scales("a") == (1.0, 1.0)
