import pytest

from hexflow_scheduler import Kernel, Policy
from support.calls import SLOW, a_call, an_instance
from support.decisions import placed, the_place


def two_speeds(**parameters: float) -> Kernel:
    kernel = Kernel(Policy.named("HexGenFlowLiteral", **parameters))
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    kernel.instance(0.0, an_instance("fast"))
    return kernel


def test_the_scores_are_the_paper_s_in_seconds() -> None:
    kernel = two_speeds(alpha=0.4, beta=10.0)
    kernel.arrive(0.0, [a_call("one")])
    kernel.arrive(0.0, [a_call("two")])
    # At 1 s: 5 s are left of the call on the slow, 2 s of that on the fast one.
    place = the_place(kernel.arrive(1.0, [a_call("three")]), "three")
    assert dict(place.scores) == {
        "slow": pytest.approx(0.6 * 10 / 5 - 0.4 * 6),
        "fast": pytest.approx(0.6 * 10 / 2 - 0.4 * 3),
    }


def test_an_empty_queue_counts_as_one_step() -> None:
    place = the_place(two_speeds(alpha=0.4, beta=10.0).arrive(0.0, [a_call()]), "c")
    assert dict(place.scores) == {
        "slow": pytest.approx(0.6 * 10 / 0.04 - 0.4 * 6),
        "fast": pytest.approx(0.6 * 10 / 0.02 - 0.4 * 3),
    }


def test_a_beta_of_one_is_nothing_against_calls_of_seconds() -> None:
    kernel = two_speeds(alpha=0.5, beta=1.0)
    kernel.arrive(0.0, [a_call("s"), a_call("f")])
    decisions = kernel.arrive(1.0, [a_call(f"c{number}") for number in range(6)])
    assert {*placed(decisions).values()} == {"fast"}
