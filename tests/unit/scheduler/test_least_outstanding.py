from hexflow_scheduler import Kernel, Policy
from support.calls import SLOW, a_call, an_instance, calls, usage
from support.decisions import placed


def a_pair() -> Kernel:
    kernel = Kernel(Policy.named("LeastOutstanding"))
    kernel.instance(0.0, an_instance("a"))
    kernel.instance(0.0, an_instance("b", profile=SLOW))
    return kernel


def test_the_instance_with_the_fewest_calls_wins_whatever_its_speed() -> None:
    kernel = a_pair()
    kernel.arrive(0.0, calls(4))
    kernel.finished(1.0, "c1", usage())
    assert placed(kernel.arrive(1.0, [a_call("new")])) == {"new": "b"}


def test_waiting_calls_samples_and_the_calls_of_others_count() -> None:
    kernel = a_pair()
    kernel.load(0.0, "a", 4)
    assert placed(kernel.arrive(0.0, [a_call("wide", samples=3)])) == {"wide": "b"}
    assert placed(kernel.arrive(0.0, [a_call("new")])) == {"new": "b"}
    assert placed(kernel.arrive(0.0, [a_call("newer"), a_call("newest")])) == {"newer": "a", "newest": "b"}
