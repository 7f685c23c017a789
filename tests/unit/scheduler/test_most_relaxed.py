import pytest

from hexflow_scheduler import Kernel, Policy, Profile
from support.calls import a_call, an_instance
from support.decisions import placed, the_place

# An output token takes 10 ms and 10 ms more for each call in the batch; prompts take nothing.
QUICK = Profile(t0=0.01, t1=0.01, t2=0.0, c1=0.0, c2=0.0, kv_tokens=100_000, slots=4)
SLUGGISH = Profile(t0=0.02, t1=0.02, t2=0.0, c1=0.0, c2=0.0, kv_tokens=100_000, slots=4)


def a_fleet(**parameters: float) -> Kernel:
    kernel = Kernel(Policy.named("MostRelaxed", **parameters))
    kernel.instance(0.0, an_instance("a6000", gpu_type="A6000", profile=SLUGGISH))
    for name in ("h100-0", "h100-1"):
        kernel.instance(0.0, an_instance(name, gpu_type="H100", profile=QUICK))
    return kernel


def test_the_type_of_the_most_slack_is_taken_and_its_least_used_instance() -> None:
    # A call takes 2 s alone on an H100, and 1 s more for each other call: three end within 4 s.
    kernel = a_fleet(share=1.0)
    decisions = kernel.arrive(0.0, [a_call("one", deadline=4.0), a_call("two", deadline=4.0)])
    assert placed(decisions) == {"one": "h100-0", "two": "h100-1"}
    assert dict(the_place(decisions, "two").scores) == {
        "h100-0": pytest.approx(-2 / 3),
        "h100-1": pytest.approx(-1 / 3),
    }


def test_the_next_type_is_taken_when_the_first_has_no_room_within_the_target() -> None:
    # Within 4 s an H100 serves three, the A6000 (4 s alone) one.
    kernel = a_fleet(share=1.0)
    decisions = kernel.arrive(0.0, [a_call(f"c{number}", deadline=4.0) for number in range(7)])
    assert [*placed(decisions).values()].count("a6000") == 1
    assert the_place(decisions, "c6").instance_id == "a6000"


def test_with_no_room_anywhere_the_least_used_of_those_in_time_is_taken() -> None:
    kernel = a_fleet(share=1.0)
    kernel.arrive(0.0, [a_call(f"c{number}", deadline=4.0) for number in range(7)])
    place = the_place(kernel.arrive(0.0, [a_call("eighth", deadline=4.0)]), "eighth")
    assert dict(place.scores) == {
        "a6000": pytest.approx(-2.0),
        "h100-0": pytest.approx(-4 / 3),
        "h100-1": pytest.approx(-4 / 3),
    }


def test_a_type_that_would_be_late_is_not_tried() -> None:
    kernel = a_fleet(share=1.0)
    decisions = kernel.arrive(0.0, [a_call(f"c{number}", deadline=3.0) for number in range(8)])
    assert "a6000" not in placed(decisions).values()


def test_the_share_is_the_target() -> None:
    # Half of 8 s: the A6000 is in time, and an H100 serves three.
    kernel = a_fleet(share=0.5)
    decisions = kernel.arrive(0.0, [a_call(f"c{number}", deadline=8.0) for number in range(7)])
    assert the_place(decisions, "c6").instance_id == "a6000"


def test_a_hopeless_call_goes_to_the_type_of_the_most_slack_all_the_same() -> None:
    assert placed(a_fleet().arrive(0.0, [a_call(deadline=1.0)])) == {"c": "h100-0"}
