import pytest

from hexflow_scheduler import Kernel, Policy
from support.calls import SLOW, a_call, an_instance
from support.decisions import placed, the_place


def two_speeds(**parameters: float) -> Kernel:
    kernel = Kernel(Policy.named("JustEnough", **parameters))
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    kernel.instance(0.0, an_instance("fast"))
    return kernel


def test_the_slowest_that_is_in_time_is_taken() -> None:
    # 3 s on the fast, 6 s on the slow one, 4.5 s on average.
    place = the_place(two_speeds(share=1.0).arrive(0.0, [a_call(deadline=7.0)]), "c")
    assert dict(place.scores) == {"slow": pytest.approx(6 / 4.5), "fast": pytest.approx(3 / 4.5)}
    assert place.instance_id == "slow"


def test_one_that_would_be_late_is_left_out() -> None:
    place = the_place(two_speeds(share=0.8).arrive(0.0, [a_call(deadline=7.0)]), "c")
    assert dict(place.scores) == {"fast": pytest.approx(3 / 4.5)}


def test_where_all_would_be_late_the_earliest_end_is_taken() -> None:
    place = the_place(two_speeds().arrive(0.0, [a_call(deadline=2.0)]), "c")
    assert dict(place.scores) == {"slow": pytest.approx(-6 / 4.5), "fast": pytest.approx(-3 / 4.5)}
    assert place.instance_id == "fast"


def test_a_budget_counts_before_the_deadline() -> None:
    kernel = two_speeds(share=1.0)
    assert placed(kernel.arrive(0.0, [a_call("x", deadline=100.0, budget_seconds=4.0)])) == {"x": "fast"}


def test_a_share_of_nothing_is_the_earliest_end() -> None:
    assert placed(two_speeds(share=0.0).arrive(0.0, [a_call(deadline=1000.0)])) == {"c": "fast"}
