from typing import Any

import pytest

from hexflow_scheduler import (
    Abort,
    CallNotRunning,
    DuplicateCall,
    End,
    InstanceState,
    InvalidInput,
    InvalidParameter,
    Kernel,
    Outcome,
    Parameters,
    Place,
    Policy,
    PrefixBlock,
    SchedulerError,
    Send,
    UnknownCall,
    UnknownInstance,
)
from hexflow_scheduler.dispatch.round_robin import RoundRobin
from support.calls import FAST, SLOW, a_call, an_instance, calls, gone, usage
from support.decisions import aborted, ended, placed, sent, the_end, the_place, the_send


def a_kernel(*instances: str, policy: str = "RoundRobin+Urgency", **given: Any) -> Kernel:
    kernel = Kernel(Policy.named(policy), **given)
    for name in instances:
        kernel.instance(0.0, an_instance(name))
    return kernel


# Placing and sending


def test_a_call_is_placed_and_sent_at_once_while_a_slot_is_free() -> None:
    decisions = a_kernel("a").arrive(5.0, [a_call(deadline=65.0)])
    assert decisions == (
        # 1,000 tokens at 1 ms and 100 at 20 ms; urgency = 3 s - (60 s - 0 s waited)
        Place(
            call_id="c",
            instance_id="a",
            urgency=-57.0,
            predicted_seconds=3.0,
            output_tokens=100.0,
            scores=(("a", 0.0),),
        ),
        Send(call_id="c", instance_id="a", urgency=-57.0, priority=None, attempt=1),
    )


def test_a_call_waits_in_our_queue_while_all_slots_are_taken() -> None:
    kernel = a_kernel("a")
    decisions = kernel.arrive(0.0, calls(3))
    assert placed(decisions) == {"c0": "a", "c1": "a", "c2": "a"}
    assert sent(decisions) == ["c0", "c1"]
    assert sent(kernel.finished(3.0, "c0", usage())) == ["c2"]


def test_a_late_query_goes_first() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(2))
    kernel.arrive(1.0, [a_call("relaxed", deadline=500.0)])
    kernel.arrive(2.0, [a_call("late", deadline=1.0)])
    kernel.arrive(3.0, [a_call("pressed", deadline=20.0)])
    order = [sent(kernel.finished(9.0, call_id, usage())) for call_id in ("c0", "c1", "late")]
    assert order == [["late"], ["pressed"], ["relaxed"]]


def test_first_come_first_served_looks_at_no_deadline() -> None:
    kernel = a_kernel("a", policy="RoundRobin")
    kernel.arrive(0.0, calls(2))
    kernel.arrive(1.0, [a_call("relaxed", deadline=500.0)])
    kernel.arrive(2.0, [a_call("late", deadline=1.0)])
    assert sent(kernel.finished(9.0, "c0", usage())) == ["relaxed"]


def test_siblings_see_each_other_when_they_are_placed() -> None:
    kernel = a_kernel("a", "b", policy="LeastOutstanding")
    decisions = kernel.arrive(0.0, calls(4))
    assert placed(decisions) == {"c0": "a", "c1": "b", "c2": "a", "c3": "b"}


def test_a_call_waits_while_the_cache_has_no_room_for_its_prompt_and_expected_output() -> None:
    kernel = Kernel(Policy.named("RoundRobin"))
    profile = FAST.__class__(t0=0.02, t1=0, t2=0, c1=0.001, c2=0, kv_tokens=2199, slots=8)
    kernel.instance(0.0, an_instance(profile=profile))
    assert sent(kernel.arrive(0.0, calls(2))) == ["c0"]
    assert sent(kernel.finished(3.0, "c0", usage())) == ["c1"]


def test_a_call_larger_than_the_whole_cache_is_sent_when_the_instance_is_empty() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, [a_call("small")])
    assert sent(kernel.arrive(0.0, [a_call("huge", prompt_tokens=150_000)])) == []
    assert sent(kernel.finished(3.0, "small", usage())) == ["huge"]


def test_a_request_for_several_samples_takes_as_many_slots() -> None:
    kernel = a_kernel("a")
    assert sent(kernel.arrive(0.0, [a_call("two", samples=2), a_call("one")])) == ["two"]


def test_more_samples_than_slots_are_sent_when_the_instance_is_empty() -> None:
    assert sent(a_kernel("a").arrive(0.0, [a_call(samples=5)])) == ["c"]


def test_the_first_in_the_queue_is_not_overtaken_by_one_that_would_fit() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, [a_call("running")])
    assert sent(kernel.arrive(1.0, [a_call("wide", samples=2, deadline=10.0), a_call("narrow")])) == []


def test_only_an_instance_of_the_model_and_of_the_named_pools_is_chosen() -> None:
    kernel = Kernel(Policy.named("RoundRobin"))
    kernel.instance(0.0, an_instance("other-model", models=frozenset({"chat"})))
    kernel.instance(0.0, an_instance("other-pool", pool="elsewhere"))
    kernel.instance(0.0, an_instance("right"))
    decisions = kernel.arrive(0.0, [a_call(pools=frozenset({"pool"}))])
    assert placed(decisions) == {"c": "right"}
    assert the_place(decisions, "c").scores == (("right", 0.0),)


def test_an_instance_whose_context_may_be_too_short_is_left_while_there_is_another() -> None:
    kernel = Kernel(Policy.named("RoundRobin"))
    kernel.instance(0.0, an_instance("short", max_context=1050))
    assert placed(kernel.arrive(0.0, [a_call("only-choice")])) == {"only-choice": "short"}
    kernel.instance(0.0, an_instance("long", max_context=1100))
    assert placed(kernel.arrive(0.0, calls(2))) == {"c0": "long", "c1": "long"}


def test_a_prompt_longer_than_every_context_is_unservable_at_once() -> None:
    kernel = Kernel()
    kernel.instance(0.0, an_instance(max_context=900))
    end = the_end(kernel.arrive(0.0, [a_call()]), "c")
    assert end.outcome is Outcome.UNSERVABLE
    assert end.reason == "a prompt of 1000 tokens fits no instance of coder; the longest context is 900"


def test_the_engine_is_sent_the_latest_start_in_milliseconds_where_it_takes_a_priority() -> None:
    kernel = Kernel(Policy.named("HexGenFlow"))
    kernel.instance(0.0, an_instance(takes_priority=True))
    # latest start = 1,700,000,060 - 3 s
    decisions = kernel.arrive(1_700_000_000.0, [a_call(deadline=1_700_000_060.0)])
    assert the_send(decisions, "c").priority == 1_700_000_057_000


def test_no_priority_is_sent_under_first_come_first_served() -> None:
    kernel = Kernel(Policy.named("RoundRobin"))
    kernel.instance(0.0, an_instance(takes_priority=True))
    assert the_send(kernel.arrive(0.0, [a_call(deadline=60.0)]), "c").priority is None


def test_nothing_arrives_with_an_empty_release() -> None:
    assert a_kernel("a").arrive(0.0, []) == ()


def test_a_rule_that_forgets_a_call_is_named() -> None:
    class Forgetful(RoundRobin):
        def place(self, now: float, siblings: Any, fleet: Any, values: Any, /) -> Any:
            return super().place(now, siblings[1:], fleet, values)

    kernel = a_kernel("a")
    kernel._dispatch = Forgetful()
    with pytest.raises(SchedulerError, match="RoundRobin chose no instance for 'c0'"):
        kernel.arrive(0.0, calls(2))


# Parking


def test_a_call_without_an_instance_is_parked_and_placed_when_one_appears() -> None:
    kernel = Kernel()
    assert kernel.arrive(0.0, [a_call(deadline=60.0)]) == ()
    assert [call.call_id for call in kernel.view().parked] == ["c"]
    assert sent(kernel.instance(5.0, an_instance())) == ["c"]
    assert kernel.next_wake() is None


def test_a_parked_call_expires_at_its_deadline() -> None:
    kernel = Kernel()
    kernel.arrive(0.0, [a_call("late", deadline=60.0), a_call("soon", deadline=20.0)])
    assert kernel.next_wake() == 20.0
    assert kernel.wake(19.9) == ()
    assert ended(kernel.wake(20.0)) == {"soon": Outcome.EXPIRED}
    assert kernel.next_wake() == 60.0


def test_a_parked_call_without_deadline_expires_after_the_policy_s_patience() -> None:
    kernel = Kernel(Policy.named(park_seconds=7.0))
    kernel.arrive(1.0, [a_call()])
    assert kernel.next_wake() == 8.0
    end = the_end(kernel.wake(8.0), "c")
    assert (end.outcome, end.reason) == (Outcome.EXPIRED, "no instance of coder could take it in time")


def test_a_call_that_arrives_after_its_deadline_with_no_instance_expires_at_once() -> None:
    assert ended(Kernel().arrive(10.0, [a_call(deadline=9.0)])) == {"c": Outcome.EXPIRED}


def test_a_late_call_is_sent_all_the_same_when_there_is_an_instance() -> None:
    decisions = a_kernel("a").arrive(10.0, [a_call(deadline=9.0)])
    assert sent(decisions) == ["c"]
    assert the_send(decisions, "c").urgency == 4.0


def test_any_input_gives_up_the_parked_calls_that_are_due() -> None:
    kernel = Kernel()
    kernel.arrive(0.0, [a_call(deadline=5.0)])
    assert ended(kernel.instance(6.0, an_instance())) == {"c": Outcome.EXPIRED}


# Ends


def test_a_finished_call_ends() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, [a_call()])
    assert kernel.finished(3.0, "c", usage()) == (End(call_id="c", outcome=Outcome.FINISHED),)


def test_cancelling_a_running_call_aborts_it_and_lets_the_next_start() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(3))
    decisions = kernel.cancel(1.0, "c0")
    assert decisions[:2] == (
        Abort(call_id="c0", instance_id="a"),
        End(call_id="c0", outcome=Outcome.CANCELLED),
    )
    assert sent(decisions) == ["c2"]


def test_cancelling_a_waiting_call_takes_it_out_of_the_queue() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(4))
    assert kernel.cancel(1.0, "c2") == (End(call_id="c2", outcome=Outcome.CANCELLED),)
    assert sent(kernel.finished(3.0, "c0", usage())) == ["c3"]


def test_cancelling_a_wide_call_that_blocked_the_queue_lets_the_next_start() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, [a_call("running")])
    kernel.arrive(1.0, [a_call("wide", samples=2, deadline=10.0), a_call("narrow")])
    assert sent(kernel.cancel(2.0, "wide")) == ["narrow"]


def test_cancelling_a_parked_call_ends_it() -> None:
    kernel = Kernel()
    kernel.arrive(0.0, [a_call()])
    assert ended(kernel.cancel(1.0, "c")) == {"c": Outcome.CANCELLED}
    assert kernel.next_wake() is None


def test_an_id_may_be_used_again_once_its_call_has_ended() -> None:
    kernel = a_kernel("a")
    for _ in range(2):
        kernel.arrive(0.0, [a_call()])
        kernel.cancel(0.0, "c")


# Failures


def test_a_failed_call_is_tried_on_another_instance() -> None:
    kernel = a_kernel("a", "b")
    kernel.arrive(0.0, [a_call()])
    decisions = kernel.failed(1.0, "c", reason="connection refused", retryable=True)
    assert placed(decisions) == {"c": "b"}
    assert the_send(decisions, "c").attempt == 2


def test_a_failed_call_goes_back_to_the_only_instance_there_is() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, [a_call()])
    assert placed(kernel.failed(1.0, "c", reason="reset", retryable=True)) == {"c": "a"}


def test_a_call_fails_for_good_after_the_last_attempt() -> None:
    kernel = a_kernel("a", "b", max_attempts=2)
    kernel.arrive(0.0, [a_call()])
    kernel.failed(1.0, "c", reason="reset", retryable=True)
    end = the_end(kernel.failed(2.0, "c", reason="reset again", retryable=True), "c")
    assert (end.outcome, end.reason) == (Outcome.FAILED, "reset again")


def test_a_failure_that_a_retry_cannot_mend_ends_the_call() -> None:
    kernel = a_kernel("a", "b")
    kernel.arrive(0.0, [a_call()])
    assert ended(kernel.failed(1.0, "c", reason="400", retryable=False)) == {"c": Outcome.FAILED}


def test_a_call_that_fails_after_its_deadline_is_not_tried_again() -> None:
    kernel = a_kernel("a", "b")
    kernel.arrive(0.0, [a_call(deadline=5.0)])
    assert ended(kernel.failed(5.0, "c", reason="reset", retryable=True)) == {"c": Outcome.FAILED}


def test_a_late_call_that_is_still_wanted_is_tried_again_until_it_expires() -> None:
    kernel = a_kernel("a", "b", "c")
    kernel.arrive(0.0, [a_call(deadline=5.0, expires=50.0)])
    assert sent(kernel.failed(49.0, "c", reason="reset", retryable=True)) == ["c"]
    assert ended(kernel.failed(50.0, "c", reason="reset", retryable=True)) == {"c": Outcome.FAILED}


@pytest.mark.parametrize(("arrives", "until"), [(0.0, 5.0), (6.0, 13.0), (47.0, 50.0)])
def test_a_call_that_may_be_late_waits_for_its_deadline_then_as_long_as_the_policy_says(
    arrives: float, until: float
) -> None:
    kernel = Kernel(Policy.named(park_seconds=7.0))
    kernel.arrive(arrives, [a_call(deadline=5.0, expires=50.0)])
    assert kernel.next_wake() == until
    assert ended(kernel.wake(until)) == {"c": Outcome.EXPIRED}


def test_a_failure_frees_the_slot_for_the_next_call() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(3))
    assert sent(kernel.failed(1.0, "c0", reason="400", retryable=False)) == ["c2"]


def test_what_ran_on_a_lost_instance_is_aborted_and_tried_elsewhere_and_what_waited_moves() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(3))
    kernel.instance(1.0, an_instance("b", profile=SLOW))
    decisions = kernel.instance(2.0, gone("a"))
    assert aborted(decisions) == ["c0", "c1"]
    assert placed(decisions) == {"c0": "b", "c1": "b", "c2": "b"}
    assert len(sent(decisions)) == 2
    assert [view.instance.instance_id for view in kernel.view().instances] == ["b"]


def test_the_calls_of_the_last_instance_are_parked_when_it_is_lost() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(3, deadline=60.0))
    assert sent(kernel.instance(1.0, gone("a"))) == []
    assert len(kernel.view().parked) == 3
    assert len(sent(kernel.instance(2.0, an_instance("b")))) == 2


def test_losing_an_instance_counts_as_an_attempt() -> None:
    kernel = a_kernel("a", "b", max_attempts=1)
    kernel.arrive(0.0, [a_call()])
    end = the_end(kernel.instance(1.0, gone("a")), "c")
    assert (end.outcome, end.reason) == (Outcome.FAILED, "instance a is gone")


def test_losing_an_unknown_instance_is_nothing() -> None:
    assert a_kernel("a").instance(0.0, gone("never-seen")) == ()


# Instances that change


@pytest.mark.parametrize("state", [InstanceState.UNREADY, InstanceState.DRAINING])
def test_what_waits_for_an_instance_that_takes_nothing_new_moves_and_what_runs_stays(
    state: InstanceState,
) -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(3))
    kernel.instance(1.0, an_instance("b"))
    decisions = kernel.instance(1.0, an_instance("a", state=state))
    assert placed(decisions) == {"c2": "b"}
    assert aborted(decisions) == []
    assert ended(kernel.finished(3.0, "c0", usage())) == {"c0": Outcome.FINISHED}
    assert placed(kernel.arrive(3.0, [a_call("new")])) == {"new": "b"}


def test_an_instance_that_is_ready_again_gets_the_parked_calls() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(4))
    kernel.instance(1.0, an_instance("a", state=InstanceState.UNREADY))
    assert len(kernel.view().parked) == 2
    kernel.finished(3.0, "c0", usage())
    assert sent(kernel.instance(4.0, an_instance("a"))) == ["c2"]


def test_a_call_keeps_the_waiting_it_has_done_when_it_moves() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, [*calls(2), a_call("moved", deadline=60.0)])
    kernel.instance(10.0, an_instance("b", profile=SLOW))
    decisions = kernel.instance(10.0, an_instance("a", state=InstanceState.UNREADY))
    # urgency = 6 s on the slow one - (60 s - 10 s waited)
    assert the_place(decisions, "moved").urgency == -44.0


def test_telling_the_same_again_changes_nothing() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(3))
    before = kernel.view()
    assert kernel.instance(0.0, an_instance("a")) == ()
    assert kernel.view() == before


def test_an_instance_that_no_longer_serves_the_model_loses_what_waits() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(3))
    kernel.instance(0.0, an_instance("a", models=frozenset({"chat"})))
    assert [call.call_id for call in kernel.view().parked] == ["c2"]


def test_more_slots_let_waiting_calls_start() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(4))
    wider = FAST.__class__(t0=0.02, t1=0, t2=0, c1=0.001, c2=0, kv_tokens=100_000, slots=4)
    assert sent(kernel.instance(1.0, an_instance("a", profile=wider))) == ["c2", "c3"]


def test_another_profile_changes_the_urgency_of_what_waits() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, calls(3, deadline=60.0))
    kernel.instance(0.0, an_instance("a", profile=SLOW))
    (waiting,) = kernel.view().instances[0].queue
    assert (waiting.urgency, waiting.predicted_seconds) == (-54.0, 6.0)


def test_slots_taken_by_others_hold_a_call_back_until_they_are_free() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, [a_call("ours")])
    kernel.load(0.0, "a", 1)
    assert sent(kernel.arrive(0.0, [a_call("next")])) == []
    assert sent(kernel.load(1.0, "a", 0)) == ["next"]


def test_a_stale_count_of_others_cannot_hold_back_for_ever() -> None:
    kernel = a_kernel("a")
    kernel.load(0.0, "a", 99)
    assert sent(kernel.arrive(0.0, [a_call()])) == ["c"]


# Parameters


def test_parameters_change_what_is_placed_from_then_on() -> None:
    kernel = Kernel(Policy.named("HexGenFlow", alpha=0.0))
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    kernel.instance(0.0, an_instance("fast"))
    kernel.arrive(0.0, [a_call("first", max_tokens=1), a_call("second", max_tokens=1)])
    kernel.parameters(0.0, Parameters(alpha=1.0))
    assert placed(kernel.arrive(0.0, calls(3))) == {"c0": "fast", "c1": "fast", "c2": "fast"}
    assert kernel.view().parameters["alpha"] == 1.0


def test_a_workflow_has_parameters_of_its_own() -> None:
    kernel = Kernel(Policy.named("HexGenFlow", alpha=0.0))
    kernel.parameters(0.0, Parameters(alpha=1.0), workflow="reports")
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    kernel.instance(0.0, an_instance("fast"))
    ours = kernel.arrive(0.0, [a_call(f"r{n}", workflow="reports") for n in range(3)])
    assert set(placed(ours).values()) == {"fast"}
    assert kernel.view().workflow_parameters["reports"]["alpha"] == 1.0
    assert kernel.view().parameters["alpha"] == 0.0


def test_parameters_left_out_keep_the_policy_s_values() -> None:
    kernel = Kernel(Policy.named("HexGenFlow", alpha=0.7))
    kernel.parameters(0.0, Parameters(beta=2.0))
    assert dict(kernel.view().parameters) == {"alpha": 0.7, "beta": 2.0}


# Questions


def test_the_view_shows_queues_in_order_with_urgency_and_key() -> None:
    kernel = a_kernel("a")
    kernel.arrive(1.0, calls(2))
    kernel.arrive(1.0, [a_call("relaxed", deadline=100.0), a_call("pressed", deadline=10.0)])
    kernel.wake(2.0)
    (shown,) = kernel.view().instances
    assert [(w.call.call_id, w.key, w.urgency, w.waited_seconds) for w in shown.queue] == [
        ("pressed", 7.0, -5.0, 1.0),
        ("relaxed", 97.0, -95.0, 1.0),
    ]
    assert [(r.call.call_id, r.sent, r.predicted_finish) for r in shown.running] == [
        ("c0", 1.0, 4.0),
        ("c1", 1.0, 4.0),
    ]
    assert (shown.free_slots, shown.free_kv_tokens) == (0, 97_800)
    # two waiting of 3 s, two running with 2 s left
    assert shown.queue_seconds == 10.0


# Time


def test_time_that_steps_back_counts_as_no_time_passed() -> None:
    kernel = a_kernel("a")
    kernel.arrive(100.0, [a_call("x", deadline=160.0)])
    decisions = kernel.arrive(90.0, [a_call("y", deadline=160.0)])
    assert the_place(decisions, "y").urgency == -57.0
    assert kernel.view().now == 100.0


# Bad input


def test_an_unknown_call_is_refused_with_what_to_do() -> None:
    kernel = a_kernel("a")
    message = "'nobody' is not known: it never arrived or has ended already"
    with pytest.raises(UnknownCall, match=message):
        kernel.finished(0.0, "nobody", usage())
    with pytest.raises(UnknownCall, match=message):
        kernel.failed(0.0, "nobody", reason="x", retryable=True)
    with pytest.raises(UnknownCall, match=message):
        kernel.cancel(0.0, "nobody")


def test_an_unknown_instance_s_load_is_refused() -> None:
    with pytest.raises(UnknownInstance, match="tell the kernel of it first"):
        Kernel().load(0.0, "nobody", 1)


def test_a_call_that_only_waits_can_neither_finish_nor_fail() -> None:
    kernel = Kernel()
    kernel.arrive(0.0, [a_call()])
    with pytest.raises(CallNotRunning):
        kernel.finished(0.0, "c", usage())
    with pytest.raises(CallNotRunning):
        kernel.failed(0.0, "c", reason="x", retryable=True)


@pytest.mark.parametrize("ids", [["c", "new"], ["new", "c"], ["new", "new"]])
def test_a_second_arrival_of_an_id_is_refused_with_all_that_came_with_it(ids: list[str]) -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, [a_call("c")])
    before = kernel.view()
    with pytest.raises(DuplicateCall):
        kernel.arrive(1.0, [a_call(call_id) for call_id in ids])
    assert kernel.view() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"call_id": ""}, "a call has a call_id"),
        ({"model": ""}, "a call has a model"),
        ({"prompt_tokens": -1}, "prompt_tokens of call 'c' is at least 0, not -1"),
        ({"max_tokens": 0}, "max_tokens of call 'c' is at least 1"),
        ({"samples": 0}, "samples of call 'c' is at least 1"),
        ({"prefix": (PrefixBlock(key="k", tokens=-1),)}, "a prefix block of call 'c' has at least 0 tokens"),
        ({"deadline": float("nan")}, "deadline of call 'c' is a number of seconds"),
        ({"budget_seconds": float("inf")}, "budget_seconds of call 'c' is a number of seconds"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        a_kernel("a").arrive(0.0, [a_call(**change)])


@pytest.mark.parametrize("now", [float("nan"), float("inf")])
def test_an_instant_that_is_no_number_is_refused(now: float) -> None:
    with pytest.raises(InvalidInput, match="now is an instant"):
        Kernel().wake(now)
    with pytest.raises(InvalidInput, match="now is an instant"):
        Kernel().admits(now, a_call(deadline=1.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slots": 0}, "slots of instance 'a' is at least 1"),
        ({"kv_tokens": 0}, "kv_tokens of instance 'a' is at least 1"),
        ({"c1": -0.1}, "c1 of instance 'a' is zero or more seconds"),
        ({"t2": float("nan")}, "t2 of instance 'a' is zero or more seconds"),
        ({"t0": 0.0, "t1": 0.0}, "a step of instance 'a' takes time"),
    ],
)
def test_an_impossible_profile_is_refused(changes: dict[str, float], message: str) -> None:
    values = {name: getattr(FAST, name) for name in ("t0", "t1", "t2", "c1", "c2", "kv_tokens", "slots")}
    profile = FAST.__class__(**{**values, **changes})
    with pytest.raises(InvalidInput, match=message):
        Kernel().instance(0.0, an_instance(profile=profile))


def test_a_usage_below_zero_is_refused_and_the_call_runs_on() -> None:
    kernel = a_kernel("a")
    kernel.arrive(0.0, [a_call()])
    with pytest.raises(InvalidInput, match="output_tokens of a finished call"):
        kernel.finished(1.0, "c", usage(-1))
    assert len(kernel.view().instances[0].running) == 1


def test_a_parameter_that_the_policy_lacks_or_out_of_bounds_is_refused() -> None:
    kernel = Kernel(Policy.named("HexGenFlow"))
    with pytest.raises(InvalidParameter, match="HexGenFlow has no parameter 'gamma'; it has: alpha, beta"):
        kernel.parameters(0.0, Parameters(gamma=1.0))
    with pytest.raises(InvalidParameter, match=r"alpha of HexGenFlow lies between 0 and 1, not 1\.5"):
        kernel.parameters(0.0, Parameters(alpha=1.5))


def test_a_count_of_others_below_zero_is_refused() -> None:
    with pytest.raises(InvalidInput, match="foreign_running"):
        a_kernel("a").load(0.0, "a", -1)


def test_no_attempt_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        Kernel(max_attempts=0)
