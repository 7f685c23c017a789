"""What may be done where not all can be in time: nothing by default, and never in silence."""

from dataclasses import replace

import pytest

from hexflow_scheduler import (
    Abort,
    Decision,
    End,
    InvalidParameter,
    Kernel,
    Outcome,
    Place,
    Policy,
    RecordingKernel,
    Relief,
    decode,
    replay,
)
from support.calls import a_call, an_instance, usage


def a_kernel(policy: str = "LeastHarm", **relief: float) -> Kernel:
    kernel = Kernel(replace(Policy.named(policy), relief=Relief(**relief)))
    kernel.instance(0.0, an_instance())
    return kernel


def placed(decisions: tuple[Decision, ...]) -> Place:
    return next(decision for decision in decisions if isinstance(decision, Place))


# Giving way: a call takes 3 s alone


def test_by_default_a_query_that_is_late_already_goes_first() -> None:
    kernel = a_kernel()
    for number in range(3):
        kernel.arrive(0.0, [a_call(f"c{number}", deadline=100.0)])
    assert not placed(kernel.arrive(10.0, [a_call("late", deadline=5.0)])).demoted
    assert [shown.call.call_id for shown in kernel.view().instances[0].queue] == ["late", "c2"]


@pytest.mark.parametrize("policy", ["LeastHarm", "RoundRobin+LatestStart"])
def test_one_that_cannot_be_in_time_gives_way_where_that_is_asked_for(policy: str) -> None:
    kernel = a_kernel(policy, demote=1.0)
    for number in range(3):
        kernel.arrive(0.0, [a_call(f"c{number}", deadline=30.0)])
    assert placed(kernel.arrive(10.0, [a_call("late", query_arrival=5.0, deadline=12.9)])).demoted
    assert not placed(kernel.arrive(10.0, [a_call("soon", query_arrival=10.0, deadline=13.1)])).demoted
    assert [shown.call.call_id for shown in kernel.view().instances[0].queue] == ["soon", "c2", "late"]


def test_what_is_still_to_come_of_a_query_counts() -> None:
    kernel = a_kernel(demote=1.0)
    for _ in range(3):
        kernel.estimates.rested(("w", "s", "coder", 0), 20.0)
    assert placed(kernel.arrive(0.0, [a_call(deadline=22.0, workflow="w", stage="s")])).demoted


def test_no_more_than_the_share_that_is_allowed_gives_way() -> None:
    kernel = a_kernel(demote=0.5)
    late = [placed(kernel.arrive(0.0, [a_call(f"c{number}", deadline=1.0)])).demoted for number in range(4)]
    assert late == [True, False, True, False]
    for number in (0, 1):
        kernel.cancel(1.0, f"c{number}")
    assert placed(kernel.arrive(1.0, [a_call("new", deadline=1.0)])).demoted


def test_a_query_without_deadline_never_gives_way() -> None:
    kernel = a_kernel(demote=1.0)
    assert not placed(kernel.arrive(1000.0, [a_call()])).demoted


# Dropping


def a_late_query(kernel: Kernel, *, optional: bool = True) -> tuple[Decision, ...]:
    """Let queries of the workflow take 10 s, and one of two calls be answered when its query is 12 s old."""
    for _ in range(3):
        kernel.estimates.answered("w", 10.0)
    pair = [
        a_call(name, query_id="q", workflow="w", stage="s", optional=optional, sibling=number)
        for number, name in enumerate("ab")
    ]
    kernel.arrive(0.0, pair)
    return kernel.finished(12.0, "a", usage())


def test_the_last_chain_of_a_late_query_is_dropped_where_that_is_asked_for() -> None:
    decisions = a_late_query(a_kernel(drop=1.1))
    assert [type(decision) for decision in decisions] == [End, Abort, End]
    end = decisions[-1]
    assert isinstance(end, End)
    assert (end.call_id, end.outcome) == ("b", Outcome.DROPPED)
    assert "late" in end.reason


@pytest.mark.parametrize(
    ("drop", "optional"),
    [(0.0, True), (1.3, True), (1.1, False)],
    ids=["off", "not so late", "not dispensable"],
)
def test_it_goes_on_otherwise(drop: float, optional: bool) -> None:
    decisions = a_late_query(a_kernel(drop=drop), optional=optional)
    assert [type(decision) for decision in decisions] == [End]


def test_a_chain_that_waits_is_dropped_too() -> None:
    kernel = a_kernel(drop=1.1)
    kernel.load(0.0, "a", 1)  # one slot is left
    decisions = a_late_query(kernel)
    assert [(d.call_id, type(d)) for d in decisions if d.call_id == "b"] == [("b", End)]


# Admission


def test_a_query_is_admitted_while_nothing_is_known_or_no_deadline_is_stated() -> None:
    kernel = a_kernel()
    assert kernel.admits(0.0, a_call(deadline=0.1)).admitted
    for _ in range(3):
        kernel.estimates.rested(("w", "s", "coder", 0), 20.0)
    assert kernel.admits(0.0, a_call(workflow="w", stage="s")).admitted


def test_one_that_would_be_late_everywhere_is_told_by_how_much_and_what_would_fit() -> None:
    kernel = a_kernel()
    for _ in range(3):
        kernel.estimates.rested(("w", "s", "coder", 0), 20.0)
    call = a_call(workflow="w", stage="s", deadline=100.0 + 11.5)
    answer = kernel.admits(100.0, call)
    assert not answer.admitted
    assert answer.expected_seconds == pytest.approx(23.0)
    assert answer.retry_after_seconds == pytest.approx(11.5)
    assert answer.share == pytest.approx(0.5)
    assert kernel.admits(100.0, replace(call, deadline=123.5)).admitted


def test_asking_changes_nothing() -> None:
    kernel = a_kernel()
    before = kernel.view()
    kernel.admits(5.0, a_call(deadline=10.0))
    assert kernel.view() == before


# The log


def test_relief_is_part_of_the_log() -> None:
    lines: list[str] = []
    policy = replace(Policy.named("LeastHarm"), relief=Relief(demote=0.5, drop=1.1))
    kernel = RecordingKernel(policy, sink=lines.append)
    kernel.instance(0.0, an_instance())
    kernel.arrive(0.0, [a_call(deadline=1.0)])
    replayed = replay(decode(line) for line in lines)
    assert replayed.difference is None
    assert replayed.kernel.policy.relief == policy.relief


@pytest.mark.parametrize("relief", [{"demote": 1.5}, {"demote": -0.1}, {"drop": 0.5}, {"drop": float("inf")}])
def test_impossible_relief_is_refused(relief: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        Relief(**relief)
