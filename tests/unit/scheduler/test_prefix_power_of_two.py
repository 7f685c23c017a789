from hexflow_scheduler import Kernel, Policy, PrefixBlock
from support.calls import a_call, an_instance, usage
from support.decisions import placed, the_place

SHOP = (PrefixBlock(key="shop", tokens=400), PrefixBlock(key="shop/orders", tokens=400))
BANK = (PrefixBlock(key="bank", tokens=800),)


def three(**parameters: float) -> Kernel:
    kernel = Kernel(Policy.named("PrefixPowerOfTwo", **parameters))
    for name in ("a", "b", "c"):
        kernel.instance(0.0, an_instance(name))
    return kernel


def test_a_call_follows_the_longest_match_while_load_is_even() -> None:
    kernel = three(imbalance=2.0)
    assert placed(kernel.arrive(0.0, [a_call("first", prefix=SHOP)])) == {"first": "a"}
    assert placed(kernel.arrive(0.0, [a_call("half", prefix=SHOP[:1])])) == {"half": "a"}
    decisions = kernel.arrive(0.0, [a_call("whole", prefix=SHOP)])
    # Only the instance that matches 800 of 1,000 tokens is looked at; two calls are there.
    assert the_place(decisions, "whole").scores == (("a", -2.0),)


def test_a_match_that_is_too_short_is_none_and_the_smallest_tree_is_taken() -> None:
    kernel = three(imbalance=100.0, match=0.5)
    kernel.arrive(0.0, [a_call("first", prefix=SHOP)])
    kernel.finished(1.0, "first", usage())
    # 400 of 1,000 tokens match on a; b and c remember nothing.
    decisions = kernel.arrive(2.0, [a_call("other", prefix=SHOP[:1])])
    assert the_place(decisions, "other").scores == (("b", 0.0), ("c", 0.0))
    assert placed(kernel.arrive(2.0, [a_call("same", prefix=SHOP)])) == {"same": "a"}


def test_uneven_load_breaks_affinity() -> None:
    kernel = three(imbalance=1.0)
    kernel.arrive(0.0, [a_call("one", prefix=BANK), a_call("two", prefix=BANK)])
    decisions = kernel.arrive(0.0, [a_call("three", prefix=BANK)])
    # Two calls more than the idlest: two instances are drawn instead, whatever they know.
    assert len(the_place(decisions, "three").scores) == 2
    assert the_place(decisions, "three").instance_id != "a"
