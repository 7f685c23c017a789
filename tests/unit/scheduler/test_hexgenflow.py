import pytest

from hexflow_scheduler import Kernel, Policy
from hexflow_scheduler.dispatch.hexgenflow import score
from support.calls import FAST, SLOW, a_call, an_instance, usage
from support.decisions import placed, the_place


def two_speeds(**parameters: float) -> Kernel:
    kernel = Kernel(Policy.named("HexGenFlow", **parameters))
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    kernel.instance(0.0, an_instance("fast", profile=FAST))
    return kernel


def test_the_score_is_the_paper_s() -> None:
    # (1 - 0.25) * 2 / 1.5 - 0.25 * 0.8
    assert score(alpha=0.25, beta=2.0, queue=1.5, compute=0.8) == pytest.approx(0.8)


def test_the_scores_of_two_idle_instances_agree_with_a_hand_computation() -> None:
    # The call takes 3 s on the fast, 6 s on the slow one: reference 4.5 s. An idle queue counts as one
    # quantum, a step of 0.02 s and 0.04 s.
    place = the_place(two_speeds(alpha=0.4, beta=0.5).arrive(0.0, [a_call()]), "c")
    assert dict(place.scores) == {
        "slow": pytest.approx(0.6 * 0.5 / (0.04 / 4.5) - 0.4 * 6 / 4.5),
        "fast": pytest.approx(0.6 * 0.5 / (0.02 / 4.5) - 0.4 * 3 / 4.5),
    }
    assert place.instance_id == "fast"


def test_the_scores_of_two_busy_instances_agree_with_a_hand_computation() -> None:
    kernel = two_speeds(alpha=0.4, beta=0.5)
    first = kernel.arrive(0.0, [a_call("one"), a_call("two")])
    assert placed(first) == {"one": "fast", "two": "slow"}
    # At 1 s: 2 s are left of the call on the fast, 5 s of that on the slow one.
    place = the_place(kernel.arrive(1.0, [a_call("three")]), "three")
    assert dict(place.scores) == {
        "slow": pytest.approx(0.3 / (5 / 4.5) - 0.4 * 6 / 4.5),
        "fast": pytest.approx(0.3 / (2 / 4.5) - 0.4 * 3 / 4.5),
    }
    assert place.instance_id == "fast"


def test_what_waits_counts_in_full_and_what_has_outlived_its_prediction_as_one_step() -> None:
    kernel = two_speeds(alpha=1.0, beta=1.0)
    kernel.arrive(0.0, [a_call("one"), a_call("two"), a_call("waits")])
    kernel.parameters(4.0, Policy.named("HexGenFlow", alpha=0.0).parameters)
    place = the_place(kernel.arrive(4.0, [a_call("new")]), "new")
    # fast: two running calls overdue (0.02 s each), one waiting of 3 s
    assert dict(place.scores)["fast"] == pytest.approx(1 / (3.04 / 4.5))
    assert place.instance_id == "slow"


def test_alpha_one_looks_at_speed_alone() -> None:
    kernel = two_speeds(alpha=1.0)
    decisions = kernel.arrive(0.0, [a_call(f"c{n}") for n in range(10)])
    assert set(placed(decisions).values()) == {"fast"}


def test_alpha_zero_looks_at_the_queue_alone() -> None:
    kernel = two_speeds(alpha=0.0)
    kernel.arrive(0.0, [a_call("long", max_tokens=400, prompt_tokens=9000)])
    assert placed(kernel.arrive(0.1, [a_call("c0"), a_call("c1")])) == {"c0": "slow", "c1": "slow"}


def test_a_learned_speed_counts() -> None:
    kernel = two_speeds(alpha=1.0)
    chosen: list[str] = []
    # The fast one takes 12 s for calls of 3 s. One call says 2.5 at most, so its factor passes 2 with the eighth.
    for number in range(9):
        chosen += placed(kernel.arrive(12.0 * number, [a_call(f"c{number}")])).values()
        kernel.finished(12.0 * number + 12.0, f"c{number}", usage())
    assert chosen == ["fast"] * 8 + ["slow"]


def test_equals_take_turns() -> None:
    kernel = Kernel(Policy.named("HexGenFlow"))
    for name in ("a", "b", "c"):
        kernel.instance(0.0, an_instance(name))
    seen: list[str] = []
    for number in range(6):
        seen += placed(kernel.arrive(float(number), [a_call(f"c{number}")])).values()
        kernel.cancel(float(number), f"c{number}")
    assert seen == ["a", "b", "c", "a", "b", "c"]
