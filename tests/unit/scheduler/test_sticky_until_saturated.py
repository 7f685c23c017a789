import pytest

from hexflow_scheduler import Kernel, Policy, PrefixBlock
from support.calls import FAST, a_call, an_instance, usage
from support.decisions import placed, the_place

SHOP = (PrefixBlock(key="shop", tokens=900),)
ROOMY = FAST.__class__(t0=0.02, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=100)


def warm_and_cold(**parameters: float) -> Kernel:
    kernel = Kernel(Policy.named("StickyUntilSaturated", **parameters))
    kernel.instance(0.0, an_instance("warm", profile=ROOMY))
    kernel.arrive(0.0, [a_call("first", prefix=SHOP)])
    kernel.finished(3.0, "first", usage())
    kernel.instance(3.0, an_instance("cold", profile=ROOMY))
    return kernel


def test_only_warm_instances_are_looked_at_while_their_first_token_comes_in_time() -> None:
    kernel = warm_and_cold()
    place = the_place(kernel.arrive(4.0, [a_call("second", prefix=SHOP)]), "second")
    # 900 of 1,000 tokens are cached: 100 are new.
    assert place.scores == (("warm", -100.0),)


def test_they_are_left_when_the_first_token_would_come_too_late() -> None:
    # A call with the prefix takes 0.1 + 2 s on the warm, 1 + 2 s on the cold: 2.55 s on average.
    kernel = warm_and_cold(gap=1.0)
    kernel.arrive(4.0, [a_call("big", prefix=(*SHOP, PrefixBlock(key="x", tokens=10)), prompt_tokens=4000)])
    # That had 900 of 4,000 tokens cached, so it is no sticky call; it goes where fewest are in flight.
    assert kernel.view().instances[0].running[0].call.call_id == "big"
    # 3.1 s of prefill are ahead on the warm: 3.2 s to the first token against 1 s, 2.2 / 2.55 of a call.
    assert placed(kernel.arrive(4.0, [a_call("patient", prefix=SHOP)])) == {"patient": "warm"}
    # With 3.2 s ahead it is 2.3 / 2.55; the limit lies between.
    kernel.parameters(4.0, Policy.named("StickyUntilSaturated", gap=0.9).parameters)
    place = the_place(kernel.arrive(4.0, [a_call("hurried", prefix=SHOP)]), "hurried")
    assert dict(place.scores) == {"warm": -(3100 + 100 + 100), "cold": -1000.0}
    assert place.instance_id == "cold"


def test_a_prompt_that_nobody_knows_goes_where_the_fewest_uncached_tokens_are_in_flight() -> None:
    kernel = warm_and_cold()
    kernel.arrive(4.0, [a_call("long", prompt_tokens=5000), a_call("short", prompt_tokens=200)])
    place = the_place(kernel.arrive(4.0, [a_call("next")]), "next")
    assert sorted(dict(place.scores).values()) == [-6000.0, -1200.0]


def test_by_calls_the_count_decides_instead() -> None:
    kernel = warm_and_cold(by_calls=1.0)
    kernel.arrive(4.0, [a_call("long", prompt_tokens=5000), a_call("s1"), a_call("s2")])
    counts = dict(the_place(kernel.arrive(4.0, [a_call("next")]), "next").scores)
    assert sorted(counts.values()) == [-2.0, -1.0]


def test_a_share_below_the_threshold_is_no_affinity() -> None:
    kernel = warm_and_cold(affinity=0.95)
    assert len(the_place(kernel.arrive(4.0, [a_call("second", prefix=SHOP)]), "second").scores) == 2


@pytest.mark.parametrize("gap", [0.0, 1000.0])
def test_where_all_are_warm_the_gap_plays_no_part(gap: float) -> None:
    kernel = Kernel(Policy.named("StickyUntilSaturated", gap=gap))
    for name in ("a", "b"):
        kernel.instance(0.0, an_instance(name, profile=ROOMY))
    kernel.arrive(0.0, [a_call("c0", prefix=SHOP), a_call("c1", prompt_tokens=5000)])
    kernel.arrive(0.0, [a_call("c2", prefix=(PrefixBlock(key="shop", tokens=900),))])
    assert {*placed(kernel.arrive(9.0, [a_call("c3", prefix=SHOP)])).values()} <= {"a", "b"}
