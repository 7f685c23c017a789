import pytest

from hexflow_scheduler import Kernel, Policy
from support.calls import SLOW, a_call, an_instance
from support.decisions import the_place


def test_the_scores_agree_with_a_hand_computation() -> None:
    kernel = Kernel(Policy.named("ShortestQueue"))
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    kernel.instance(0.0, an_instance("fast"))
    kernel.arrive(0.0, [a_call("one"), a_call("two")])
    # At 1 s: 5 of 6 s are left on the slow, 2 of 3 s on the fast; a call takes 4.5 s on average.
    place = the_place(kernel.arrive(1.0, [a_call("three")]), "three")
    assert dict(place.scores) == {"slow": pytest.approx(-5 / 4.5), "fast": pytest.approx(-2 / 4.5)}
    assert place.instance_id == "fast"


def test_a_slow_instance_with_less_to_do_is_taken() -> None:
    kernel = Kernel(Policy.named("ShortestQueue"))
    kernel.instance(0.0, an_instance("fast"))
    kernel.arrive(0.0, [a_call("one", max_tokens=1000)])
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    assert the_place(kernel.arrive(0.5, [a_call("two")]), "two").instance_id == "slow"
