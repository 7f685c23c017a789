import pytest

from hexflow_scheduler import Kernel, Policy, PrefixBlock
from support.calls import SLOW, a_call, an_instance, usage
from support.decisions import placed, the_place

SHOP = (PrefixBlock(key="shop", tokens=800),)


def two_speeds() -> Kernel:
    kernel = Kernel(Policy.named("EarliestFinish"))
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    kernel.instance(0.0, an_instance("fast"))
    return kernel


def test_the_scores_of_idle_instances_are_their_seconds() -> None:
    place = the_place(two_speeds().arrive(0.0, [a_call()]), "c")
    assert dict(place.scores) == {"slow": pytest.approx(-6 / 4.5), "fast": pytest.approx(-3 / 4.5)}


def test_the_prefill_that_is_ahead_and_the_wait_for_a_slot_count() -> None:
    kernel = two_speeds()
    kernel.arrive(0.0, [a_call("one"), a_call("two")])
    # At 0.5 s. Both run on the fast: the first is prefilled at 1 s, the second at 2 s, so 1.5 s are ahead. Its
    # two slots are taken by calls with 2.5 s left: one is free in 1 / 2 * 2.5 s. Then 3 s for the call.
    place = the_place(kernel.arrive(0.5, [a_call("three")]), "three")
    assert dict(place.scores) == {
        "slow": pytest.approx(-6 / 4.5),
        "fast": pytest.approx(-(1.25 + 1.5 + 3) / 4.5),
    }
    assert place.instance_id == "fast"


def test_what_is_cached_need_not_be_prefilled() -> None:
    kernel = two_speeds()
    kernel.arrive(0.0, [a_call("one", prefix=SHOP, model="coder")])
    kernel.finished(3.0, "one", usage())
    place = the_place(kernel.arrive(4.0, [a_call("two", prefix=SHOP)]), "two")
    # 800 of 1,000 tokens are cached on the fast: 0.2 + 2 s there, 6 s on the slow.
    assert dict(place.scores) == {"slow": pytest.approx(-6 / 4.1), "fast": pytest.approx(-2.2 / 4.1)}


def test_a_burst_spreads_as_queues_grow() -> None:
    decisions = two_speeds().arrive(0.0, [a_call(f"c{n}") for n in range(4)])
    assert [*placed(decisions).values()] == ["fast", "fast", "slow", "fast"]
