"""How much a decision costs, counted in executed lines instead of seconds."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from hexflow_scheduler import Kernel, Policy
from hexflow_scheduler.policy import DISPATCH_RULES, QUEUE_RULES
from support.calls import FAST, a_call, an_instance, usage


def lines_executed(act: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def a_busy_kernel(policy: str, *, waiting: int) -> Kernel:
    kernel = Kernel(Policy.named(policy))
    profile = FAST.__class__(t0=0.02, t1=0, t2=0, c1=0.001, c2=0, kv_tokens=10**9, slots=4)
    for name in ("a", "b", "c", "d"):
        kernel.instance(0.0, an_instance(name, profile=profile))
    kernel.arrive(0.0, [a_call(f"c{number}", deadline=60.0 + number % 47) for number in range(waiting)])
    return kernel


# Each rule once: how an instance is chosen and how its queue is ordered do not know of each other.
# LeastHarm weighs every query that a placement delays, those that wait among them; it has bounds of its own.
RULES = [
    *(rule for rule in DISPATCH_RULES if rule != "LeastHarm"),
    *(f"RoundRobin+{queue}" for queue in QUEUE_RULES),
]


@pytest.mark.parametrize("policy", RULES)
def test_a_decision_costs_no_more_with_two_thousand_calls_waiting_than_with_fifty(policy: str) -> None:
    few, many = a_busy_kernel(policy, waiting=50), a_busy_kernel(policy, waiting=2000)

    def steps(kernel: Kernel) -> list[int]:
        running = [run.call.call_id for shown in kernel.view().instances for run in shown.running]
        waits = [wait.call.call_id for shown in kernel.view().instances for wait in shown.queue]
        return [
            lines_executed(lambda: kernel.arrive(1.0, [a_call("new", deadline=70.0)])),
            lines_executed(lambda: kernel.finished(2.0, running[0], usage())),
            lines_executed(lambda: kernel.failed(2.5, running[1], reason="x", retryable=False)),
            lines_executed(lambda: kernel.cancel(3.0, waits[len(waits) // 2])),
        ]

    for cheap, dear in zip(steps(few), steps(many), strict=True):
        assert dear <= cheap + 30


def test_tenants_that_came_and_went_cost_a_fair_queue_nothing() -> None:
    def lines(tenants: int) -> int:
        kernel = a_busy_kernel("RoundRobin+VTC", waiting=0)
        for number in range(tenants):
            kernel.arrive(float(number), [a_call(f"c{number}", tenant=f"t{number}")])
            kernel.finished(number + 0.5, f"c{number}", usage())
        return lines_executed(lambda: kernel.arrive(1e4, [a_call("new", tenant="new")]))

    assert lines(500) <= lines(20) + 10


def test_nothing_is_kept_of_calls_that_have_ended() -> None:
    kernel = a_busy_kernel("HexGenFlow", waiting=0)
    for number in range(1500):
        kernel.arrive(float(number), [a_call(f"c{number}", deadline=number + 60.0)])
        kernel.finished(number + 0.5, f"c{number}", usage())
    remembered = sum(
        len(held) for held in (kernel._calls, kernel._fleet._queries, kernel._fleet._idle, kernel._parking)
    )
    assert remembered == 0
    assert all(load.queue.entries < 50 for load in kernel._fleet)
