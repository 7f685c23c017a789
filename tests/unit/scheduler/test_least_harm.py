"""LeastHarm against sums done by hand, and against the whole evaluation that its bounds spare."""

from random import Random
from typing import Any

import pytest

from hexflow_scheduler import Instance, Kernel, Place, Policy, PrefixBlock, Profile, Send
from hexflow_scheduler.dispatch.least_harm import LeastHarm
from support.busy import BusyFleet
from support.calls import a_call, an_instance, usage
from support.whole_evaluation import compare

# A step takes 10 ms and 1 ms for each sequence; a prompt token 1 ms.
QUICK = Profile(t0=0.010, t1=0.001, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=8)
SLOW = Profile(t0=0.030, t1=0.003, t2=0.0, c1=0.003, c2=0.0, kv_tokens=100_000, slots=8)


def a_kernel(*profiles: Profile, exponent: float = 3.0, **changes: Any) -> Kernel:
    kernel = Kernel(Policy.named("LeastHarm", exponent=exponent))
    for name, profile in zip("abcdefgh", profiles, strict=False):
        kernel.instance(0.0, an_instance(name, profile=profile, **changes))
    return kernel


def places(kernel: Kernel, now: float, *calls: Any) -> dict[str, Place]:
    decisions = kernel.arrive(now, calls)
    return {decision.call_id: decision for decision in decisions if isinstance(decision, Place)}


# Golden


def test_on_idle_instances_the_harm_is_that_to_the_call_itself() -> None:
    kernel = a_kernel(QUICK, SLOW)
    place = places(kernel, 0.0, a_call(deadline=10.0))["c"]
    # a: prefill 1 s, 100 tokens of 10 ms and the 1 ms that it adds itself: 2.1 s; b: 3 + 3.3 = 6.3 s
    assert dict(place.scores) == pytest.approx({"a": -((2.1 / 10) ** 3), "b": -((6.3 / 10) ** 3)})
    assert place.instance_id == "a"


def test_a_query_on_the_instance_pays_for_the_stall_and_for_slower_steps() -> None:
    kernel = a_kernel(QUICK, SLOW)
    kernel.arrive(0.0, [a_call("first", deadline=10.0)])
    place = places(kernel, 0.0, a_call("second", deadline=20.0))["second"]
    # On a: 1 s of prefill is outstanding. The first call ends at 0.7 * 1 + 100 * 11 ms = 1.8 s; with the second
    # 1 s and 100 * 1 ms later. The second ends at 1 + 1 + 100 * (11 + 1) ms = 3.2 s.
    first = 10 * ((2.9 / 10) ** 3 - (1.8 / 10) ** 3)
    second = 20 * (3.2 / 20) ** 3
    on_b = 20 * (6.3 / 20) ** 3
    assert dict(place.scores) == pytest.approx({"a": -(first + second) / 20, "b": -on_b / 20})


def test_the_prompt_that_is_cached_causes_no_stall() -> None:
    kernel = a_kernel(QUICK)
    block = (PrefixBlock(key="schema", tokens=900),)
    kernel.arrive(0.0, [a_call("first", deadline=10.0, prefix=block)])
    place = places(kernel, 0.0, a_call("second", deadline=20.0, prefix=block))["second"]
    first = 10 * ((1.8 + 0.1 + 0.1) ** 3 - 1.8**3) / 10**3
    second = 20 * ((1 + 0.1 + 1.2) / 20) ** 3
    assert dict(place.scores) == pytest.approx({"a": -(first + second) / 20})


def test_an_exponent_of_one_minds_the_mean() -> None:
    kernel = a_kernel(QUICK, exponent=1.0)
    kernel.arrive(0.0, [a_call("first", deadline=10.0)])
    place = places(kernel, 0.0, a_call("second", deadline=20.0))["second"]
    assert dict(place.scores) == pytest.approx({"a": -(1.1 + 3.2) / 20})


def test_several_samples_slow_the_others_that_many_times() -> None:
    kernel = a_kernel(QUICK)
    kernel.arrive(0.0, [a_call("first", deadline=10.0)])
    place = places(kernel, 0.0, a_call("second", deadline=20.0, samples=4))["second"]
    first = 10 * ((1.8 + 1.0 + 0.4) ** 3 - 1.8**3) / 10**3
    second = 20 * ((2.0 + 100 * 0.015) / 20) ** 3
    assert dict(place.scores) == pytest.approx({"a": -(first + second) / 20})


def test_what_the_engine_runs_for_others_makes_its_steps_longer() -> None:
    kernel = a_kernel(QUICK)
    kernel.load(0.0, "a", 5)
    place = places(kernel, 0.0, a_call(deadline=10.0))["c"]
    assert dict(place.scores) == pytest.approx({"a": -(((1 + 100 * 0.016) / 10) ** 3)})


def test_where_no_slot_is_free_the_wait_for_one_is_reckoned() -> None:
    kernel = a_kernel(Profile(t0=0.01, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=2))
    kernel.arrive(0.0, [a_call("x", deadline=1e6, samples=2)])
    place = places(kernel, 0.0, a_call("second", deadline=20.0))["second"]
    # One of two slots short, 100 tokens of 10 ms left: half a second; then 1 s behind x's prefill, its own 1 s, 1 s.
    assert dict(place.scores)["a"] == pytest.approx(-((3.5 / 20) ** 3), rel=1e-3)


def test_where_no_kv_is_free_the_wait_for_it_is_reckoned() -> None:
    kernel = a_kernel(Profile(t0=0.01, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=2000, slots=20))
    kernel.arrive(0.0, [a_call("x", deadline=1e6)])
    place = places(kernel, 0.0, a_call("second", deadline=20.0))["second"]
    # 200 tokens of 1,100 short, 100 tokens of 10 ms left
    assert dict(place.scores)["a"] == pytest.approx(-(((3 + 200 / 1100) / 20) ** 3), rel=1e-3)


def test_a_running_call_is_thought_to_be_as_far_as_its_instance_could_be() -> None:
    kernel = a_kernel(QUICK)
    kernel.arrive(0.0, [a_call("first", deadline=10.0)])
    # Prefilled at 1 s, then a token each 11 ms: at 1.55 s it has half of its 100.
    place = places(kernel, 1.55, a_call("second", query_arrival=1.55, deadline=21.55))["second"]
    first = 10 * ((2.1 + 1.0 + 0.05) ** 3 - 2.1**3) / 10**3
    second = 20 * ((1.0 + 100 * 0.012) / 20) ** 3
    assert dict(place.scores) == pytest.approx({"a": -(first + second) / 20})


def test_the_rest_of_the_workflow_is_in_the_latency() -> None:
    kernel = a_kernel(QUICK, SLOW)
    for _ in range(3):
        kernel.estimates.rested(("w", "link", "coder", 0), 5.0)
    place = places(kernel, 0.0, a_call(deadline=10.0, workflow="w", stage="link"))["c"]
    scores = dict(place.scores)
    assert scores["a"] == pytest.approx(-((7.1 / 10) ** 3 - (5 / 10) ** 3))
    assert scores["b"] == pytest.approx(-((11.3 / 10) ** 3 - (5 / 10) ** 3), rel=1e-5)


def test_a_query_without_deadline_gets_five_times_the_mean_of_its_workflow() -> None:
    kernel = a_kernel(QUICK)
    for _ in range(3):
        kernel.estimates.answered("w", 8.0)
    place = places(kernel, 0.0, a_call(workflow="w"))["c"]
    assert dict(place.scores) == pytest.approx({"a": -((2.1 / 40) ** 3)})


def test_nothing_is_lost_by_a_sibling_that_is_not_the_slowest() -> None:
    kernel = a_kernel(QUICK, SLOW)
    # The long one takes 1 + 400 * 11 ms = 5.4 s on a; the short one is back from b in 3 + 20 * 33 ms, disturbing nobody.
    kernel.arrive(0.0, [a_call("long", query_id="q", deadline=60.0, max_tokens=400)])
    place = places(kernel, 0.0, a_call("short", query_id="q", deadline=60.0, max_tokens=20))["short"]
    assert place.instance_id == "b"
    assert dict(place.scores)["b"] == 0.0


def test_a_sibling_costs_from_where_it_becomes_the_slowest() -> None:
    kernel = a_kernel(QUICK, SLOW)
    kernel.arrive(0.0, [a_call("long", query_id="q", deadline=60.0, max_tokens=400)])
    # 5.4 s against 3 + 100 * 33 ms
    place = places(kernel, 0.0, a_call("short", query_id="q", deadline=60.0))["short"]
    assert dict(place.scores)["b"] == pytest.approx(-(6.3**3 - 5.4**3) / 60**3)


def test_siblings_are_placed_the_longest_first_and_then_looked_at_again() -> None:
    kernel = a_kernel(QUICK, QUICK, SLOW)
    same = {"query_id": "q", "deadline": 60.0}
    chosen = places(
        kernel,
        0.0,
        a_call("x", max_tokens=50, **same),
        a_call("y", max_tokens=1000, **same),
        a_call("z", max_tokens=1000, **same),
    )
    assert {chosen["y"].instance_id, chosen["z"].instance_id} == {"a", "b"}
    assert chosen["x"].instance_id == "c"


def places_a_third_query_of(tenant: str, *, fairness: float, weight: float = 1.0) -> float:
    """Return the harm that it is charged with, alone on the slower instance, while "many" has two under way."""
    kernel = Kernel(Policy.named("LeastHarm", fairness=fairness))
    for name, profile in (("a", QUICK), ("b", SLOW)):
        kernel.instance(0.0, an_instance(name, profile=profile))
    for number in range(2):
        kernel.arrive(0.0, [a_call(f"many-{number}", tenant="many", tenant_weight=weight, deadline=10.0)])
    kernel.arrive(0.0, [a_call("few", tenant="few", deadline=10.0)])
    third = places(kernel, 0.0, a_call("third", tenant=tenant, tenant_weight=weight, deadline=10.0))["third"]
    harm = min(-score for _, score in third.scores)
    return round(harm, 9)


def test_under_fairness_the_queries_of_a_tenant_that_is_ahead_count_less_and_nobody_elses() -> None:
    assert places_a_third_query_of("many", fairness=1.0) < places_a_third_query_of("many", fairness=0.5)
    assert places_a_third_query_of("many", fairness=0.5) < places_a_third_query_of("many", fairness=0.0)
    assert places_a_third_query_of("other", fairness=1.0) == places_a_third_query_of("other", fairness=0.0)
    # Three queries against one are no more than the share of a tenant of weight 3.
    plain = places_a_third_query_of("many", fairness=0.0)
    assert places_a_third_query_of("many", fairness=1.0, weight=3.0) == plain


def test_under_fairness_calls_of_a_tenant_that_is_ahead_wait_behind_those_of_others() -> None:
    one_slot = Profile(t0=0.010, t1=0.001, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=1)
    kernel = Kernel(Policy.named("LeastHarm", fairness=1.0))
    kernel.instance(0.0, an_instance("a", profile=one_slot))
    kernel.arrive(0.0, [a_call("few-0", tenant="few", deadline=50.0)])
    for number in range(3):
        kernel.arrive(0.0, [a_call(f"many-{number}", tenant="many", deadline=50.0)])
    kernel.arrive(1.0, [a_call("few-1", tenant="few", query_arrival=1.0, deadline=60.0)])
    (instance,) = kernel.view().instances
    # The first of the many came while it was not ahead.
    assert [each.call.call_id for each in instance.queue] == ["many-0", "few-1", "many-1", "many-2"]


def test_equals_take_turns() -> None:
    kernel = a_kernel(QUICK, QUICK, QUICK)
    ids = []
    for number in range(6):
        ids.append(
            places(kernel, 10.0 * number, a_call(f"c{number}", deadline=1e9))[f"c{number}"].instance_id
        )
        kernel.finished(10.0 * number + 2.1, f"c{number}", usage())
    assert ids == ["a", "b", "c", "a", "b", "c"]


def test_late_queries_and_deadlines_before_their_arrival_are_no_trouble() -> None:
    kernel = a_kernel(QUICK, SLOW, exponent=8.0)
    for number, deadline in enumerate((-1e9, 0.0, 1e-9, 50.0)):
        kernel.arrive(1e6, [a_call(f"c{number}", query_arrival=1.0, deadline=deadline)])
    place = places(kernel, 1e6, a_call("new", query_arrival=2e6, deadline=2e6 + 5))["new"]
    assert all(-1e300 < score <= 0 for _, score in place.scores)


def test_a_call_without_a_token_is_no_trouble() -> None:
    kernel = a_kernel(QUICK, SLOW)
    assert places(kernel, 0.0, a_call(prompt_tokens=0, deadline=0.0))["c"].instance_id == "a"


def test_calls_wait_here_only_when_slots_run_out_and_go_by_the_deadline_of_their_query() -> None:
    kernel = a_kernel(Profile(t0=0.01, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=2))
    sent = [
        decision.call_id
        for number, deadline in enumerate((50.0, 60.0, 90.0, 40.0))
        for decision in kernel.arrive(0.0, [a_call(f"c{number}", deadline=deadline)])
        if isinstance(decision, Send)
    ]
    assert sent == ["c0", "c1"]
    decisions = kernel.finished(2.0, "c0", usage())
    assert [decision.call_id for decision in decisions if isinstance(decision, Send)] == ["c3"]


# Properties


@pytest.mark.parametrize(("instances", "calls", "fleets"), [(4, 12, 8), (12, 6, 6), (60, 4, 2)])
def test_the_choice_equals_that_of_the_whole_evaluation(instances: int, calls: int, fleets: int) -> None:
    # tests/bench/decision.py --states 10000 does more of them.
    for seed in range(fleets):
        busy = BusyFleet(Random(seed), instances=instances, calls=calls)
        for number in range(8):
            compare(busy, exponent=(3.0, 3.0, 1.0, 2.5)[number % 4])


def test_an_instance_that_changes_or_goes_leaves_nothing_behind() -> None:
    kernel = a_kernel(QUICK, SLOW)
    kernel.arrive(0.0, [a_call(f"c{n}", query_id="q", deadline=60.0) for n in range(4)])
    kernel.instance(1.0, an_instance("a", profile=SLOW))
    kernel.instance(2.0, Instance(**{**_fields(an_instance("b", profile=SLOW)), "state": "Gone"}))
    kernel.arrive(3.0, [a_call("d", deadline=60.0)])
    for call_id in [*kernel._calls]:
        kernel.cancel(4.0, call_id)
    kernel.arrive(5.0, [a_call("e", deadline=60.0)])
    rule = kernel._dispatch
    assert isinstance(rule, LeastHarm)
    assert [each.active.call.call_id for each in rule.board.calls.values()] == ["e"]


def _fields(instance: Instance) -> dict[str, Any]:
    return {name: getattr(instance, name) for name in instance.__slots__}
