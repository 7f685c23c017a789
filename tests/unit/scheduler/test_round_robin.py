from hexflow_scheduler import Kernel, Policy
from support.calls import SLOW, a_call, an_instance, calls, gone
from support.decisions import placed


def test_instances_take_turns_whatever_their_speed_and_load() -> None:
    kernel = Kernel(Policy.named("RoundRobin"))
    for name, changes in (("a", {}), ("b", {"profile": SLOW}), ("c", {})):
        kernel.instance(0.0, an_instance(name, **changes))
    decisions = kernel.arrive(0.0, calls(7))
    assert [*placed(decisions).values()] == ["a", "b", "c", "a", "b", "c", "a"]


def test_turns_go_on_when_an_instance_leaves_and_another_comes() -> None:
    kernel = Kernel(Policy.named("RoundRobin"))
    for name in ("a", "b", "c"):
        kernel.instance(0.0, an_instance(name))
    kernel.arrive(0.0, [a_call("first")])
    kernel.instance(0.0, gone("b"))
    kernel.instance(0.0, an_instance("d"))
    assert [*placed(kernel.arrive(0.0, calls(4))).values()] == ["c", "d", "a", "c"]
