"""Who goes first under each queue rule, with an instance whose slots are taken."""

from collections.abc import Iterable
from typing import Any

import pytest

from hexflow_scheduler import Call, InvalidInput, Kernel, Policy
from hexflow_scheduler.levels import Levels
from support.calls import FAST, SLOW, a_call, an_instance, usage
from support.decisions import sent, the_send

ONE_SLOT = FAST.__class__(t0=0.02, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=1)


def one_slot(rule: str, **changes: Any) -> Kernel:
    """Return a kernel whose one instance, of one slot, is busy with a call called ``busy``."""
    kernel = Kernel(Policy.named(f"RoundRobin+{rule}"))
    kernel.instance(0.0, an_instance(profile=ONE_SLOT, **changes))
    kernel.arrive(0.0, [a_call("busy", tenant="nobody")])
    return kernel


def order_of(kernel: Kernel, now: float, first: str = "busy", seconds: float = 3.0) -> list[str]:
    """Let what runs finish, call by call, and return the order in which the others are sent."""
    order = []
    while sending := sent(kernel.finished(now, first, usage())):
        (first,) = sending
        order.append(first)
        now += seconds
    return order


def arrive(kernel: Kernel, now: float, calls: Iterable[Call]) -> None:
    for call in calls:
        kernel.arrive(now, [call])


def test_least_laxity_goes_by_deadline_less_the_call_s_own_seconds() -> None:
    kernel = one_slot("LeastLaxity", takes_priority=True)
    # 3 s and 1 + 0.2 s alone: their laxities end at 17, 16.8 and 16 s.
    arrive(
        kernel,
        1.0,
        [
            a_call("later", deadline=20.0),
            a_call("short", deadline=18.0, max_tokens=10),
            a_call("long", deadline=19.0),
        ],
    )
    (send,) = [d for d in kernel.finished(3.0, "busy", usage()) if sent([d])]
    assert (send.call_id, send.priority) == ("long", 16_000)  # type: ignore[union-attr]
    assert order_of(kernel, 6.0, first="long") == ["short", "later"]


class TestVTC:
    def test_the_tenant_that_was_served_least_goes_next(self) -> None:
        kernel = one_slot("VTC")
        arrive(kernel, 0.0, [a_call(f"a{n}", tenant="a") for n in range(3)])
        arrive(kernel, 1.0, [a_call(f"b{n}", tenant="b") for n in range(2)])
        # Both begin even, and a call of either costs 1,000 + 2 * 100: they take turns.
        assert order_of(kernel, 3.0) == ["a0", "b0", "a1", "b1", "a2"]

    def test_a_token_of_output_counts_twice_and_the_difference_is_settled_at_the_end(self) -> None:
        kernel = one_slot("VTC")
        arrive(kernel, 0.0, [a_call(f"a{n}", tenant="a") for n in range(2)])
        arrive(kernel, 0.0, [a_call(f"b{n}", tenant="b", prompt_tokens=1150) for n in range(2)])
        assert sent(kernel.finished(3.0, "busy", usage())) == ["a0"]
        assert sent(kernel.finished(6.0, "a0", usage(20))) == ["b0"]
        # a0 gave 20 tokens of the 100 that were expected: a counts 1,040 now, b 1,350.
        assert sent(kernel.finished(9.0, "b0", usage(100, prompt_tokens=1150))) == ["a1"]

    def test_a_weight_is_a_share(self) -> None:
        kernel = one_slot("VTC")
        arrive(kernel, 0.0, [a_call(f"a{n}", tenant="a", tenant_weight=2.0) for n in range(4)])
        arrive(kernel, 0.0, [a_call(f"b{n}", tenant="b") for n in range(2)])
        assert order_of(kernel, 3.0) == ["a0", "b0", "a1", "a2", "b1", "a3"]

    def test_a_weight_is_above_zero(self) -> None:
        with pytest.raises(InvalidInput, match="tenant_weight of call 'c' is above zero, not 0"):
            one_slot("VTC").arrive(0.0, [a_call(tenant_weight=0.0)])

    def test_one_that_comes_late_is_lifted_to_the_others(self) -> None:
        kernel = one_slot("VTC")
        arrive(kernel, 0.0, [a_call(f"a{n}", tenant="a") for n in range(5)])
        arrive(kernel, 0.0, [a_call(f"b{n}", tenant="b") for n in range(4)])
        assert sent(kernel.finished(3.0, "busy", usage())) == ["a0"]
        assert sent(kernel.finished(6.0, "a0", usage())) == ["b0"]
        assert sent(kernel.finished(9.0, "b0", usage())) == ["a1"]
        # c was served nothing, but it gets no more than its turn from now on.
        arrive(kernel, 10.0, [a_call(f"c{n}", tenant="c") for n in range(3)])
        assert order_of(kernel, 12.0, first="a1") == ["b1", "c0", "a2", "b2", "c1", "a3", "b3", "c2", "a4"]

    def test_with_nobody_waiting_one_is_lifted_to_whoever_was_sent_last(self) -> None:
        kernel = one_slot("VTC")
        kernel.finished(3.0, "busy", usage())
        kernel.arrive(4.0, [a_call("a0", tenant="a")])
        arrive(kernel, 5.0, [a_call("b0", tenant="b"), a_call("a1", tenant="a"), a_call("b1", tenant="b")])
        # b begins at the 2,400 that a (after nobody's 1,200) counts, so neither may catch up first.
        assert order_of(kernel, 7.0, first="a0") == ["b0", "a1", "b1"]

    def test_who_gives_up_waits_no_more(self) -> None:
        kernel = one_slot("VTC")
        arrive(kernel, 0.0, [a_call("a0", tenant="a"), a_call("b0", tenant="b"), a_call("a1", tenant="a")])
        kernel.cancel(1.0, "a0")
        assert order_of(kernel, 3.0) == ["b0", "a1"]


class TestQLM:
    def test_a_group_s_calls_go_by_arrival_and_groups_by_their_first_deadline(self) -> None:
        kernel = one_slot("QLM")
        # Two groups: SLOs of about 60 s and of 30 s.
        arrive(kernel, 0.0, [a_call("slow-1", deadline=60.0), a_call("slow-2", deadline=58.0)])
        arrive(kernel, 1.0, [a_call("fast-1", deadline=31.0, query_arrival=1.0)])
        arrive(kernel, 2.0, [a_call("fast-2", deadline=92.0, query_arrival=62.0)])
        # A query does not arrive later than its first call: fast-2 has 90 s, a group of its own.
        assert order_of(kernel, 3.0) == ["fast-1", "slow-1", "slow-2", "fast-2"]

    def test_a_group_moves_with_its_head(self) -> None:
        kernel = one_slot("QLM")
        arrive(kernel, 0.0, [a_call("a1", deadline=30.0)])
        arrive(kernel, 0.5, [a_call("b1", deadline=44.0)])
        arrive(kernel, 20.0, [a_call("a2", deadline=50.0, query_arrival=20.0)])
        assert order_of(kernel, 21.0) == ["a1", "b1", "a2"]


class TestLeastAttained:
    def test_a_query_that_was_served_less_goes_first(self) -> None:
        kernel = one_slot("LeastAttained")
        kernel.finished(3.0, "busy", usage())
        kernel.arrive(3.0, [a_call("q1-1", query_id="q1")])
        kernel.finished(6.0, "q1-1", usage())
        kernel.arrive(6.0, [a_call("other")])
        arrive(kernel, 6.5, [a_call("q1-2", query_id="q1"), a_call("new")])
        # q1 was served 3 s, the new one nothing.
        assert order_of(kernel, 9.0, first="other") == ["new", "q1-2"]

    def test_siblings_begin_where_their_stage_began(self) -> None:
        kernel = one_slot("LeastAttained")
        kernel.arrive(0.0, [a_call("q1-1", query_id="q1"), a_call("q1-2", query_id="q1"), a_call("new")])
        # q1-1 being served does not put its sibling behind: the longest path counts, not the sum.
        assert order_of(kernel, 3.0) == ["q1-1", "q1-2", "new"]

    def test_one_that_waited_four_times_what_it_was_served_goes_first(self) -> None:
        def kernel_with_q1_waiting() -> Kernel:
            kernel = one_slot("LeastAttained")
            kernel.finished(3.0, "busy", usage())
            kernel.arrive(3.0, [a_call("q1-1", query_id="q1")])
            kernel.finished(6.0, "q1-1", usage())
            kernel.arrive(6.0, [a_call("long")])
            kernel.arrive(6.0, [a_call("q1-2", query_id="q1")])
            kernel.arrive(7.0, [a_call("new")])
            return kernel

        assert sent(kernel_with_q1_waiting().finished(17.9, "long", usage())) == ["new"]
        assert sent(kernel_with_q1_waiting().finished(18.0, "long", usage())) == ["q1-2"]

    def test_levels_grow_by_two_and_go_by_arrival(self) -> None:
        kernel = Kernel(Policy.named("RoundRobin+LeastAttained"))
        kernel.instance(0.0, an_instance(profile=ONE_SLOT))
        now = 0.0
        for query, seconds in (("first", 4.0), ("a-bit-more", 7.9), ("twice", 8.0)):
            kernel.arrive(now, [a_call(f"{query}-1", query_id=query)])
            now += seconds
            kernel.finished(now, f"{query}-1", usage())
        kernel.arrive(now, [a_call("busy")])
        arrive(
            kernel,
            now,
            [a_call(f"{query}-2", query_id=query) for query in ("twice", "a-bit-more", "first")],
        )
        assert order_of(kernel, now + 3, seconds=0.5) == ["a-bit-more-2", "first-2", "twice-2"]


class TestProjectedRatio:
    def test_the_query_that_will_be_latest_for_its_size_goes_first(self) -> None:
        kernel = one_slot("ProjectedRatio")
        # Alone 3 s and 11 s; since their arrivals 4 and 12 s have passed at the end of `busy`.
        arrive(kernel, 0.5, [a_call("long", query_arrival=-9.0, prompt_tokens=9000)])
        arrive(kernel, 0.5, [a_call("short", query_arrival=-1.0)])
        # (12 + 11) / 11 against (4 + 3) / 3
        assert order_of(kernel, 3.0) == ["short", "long"]

    def test_the_order_changes_while_they_wait(self) -> None:
        def kernel_at_rest() -> Kernel:
            kernel = one_slot("ProjectedRatio")
            arrive(kernel, 1.0, [a_call("long", query_arrival=-20.0, prompt_tokens=9000)])
            arrive(kernel, 1.0, [a_call("short", query_arrival=0.5)])
            return kernel

        # At 3 s (23 + 11) / 11 = 3.1 against 5.5 / 3 = 1.8; at 12 s 3.9 against 4.8.
        assert sent(kernel_at_rest().finished(3.0, "busy", usage())) == ["long"]
        assert sent(kernel_at_rest().finished(12.0, "busy", usage())) == ["short"]

    def test_the_horizon_is_the_path_so_far(self) -> None:
        kernel = one_slot("ProjectedRatio")
        kernel.arrive(0.0, [a_call("q1-1", query_id="q1")])
        assert sent(kernel.finished(3.0, "busy", usage())) == ["q1-1"]
        kernel.arrive(3.0, [a_call("q2-1", query_id="q2", query_arrival=3.0)])
        assert sent(kernel.finished(6.0, "q1-1", usage())) == ["q2-1"]
        kernel.arrive(6.0, [a_call("q1-2", query_id="q1")])
        kernel.arrive(6.0, [a_call("q3", query_arrival=4.0)])
        # At 9 s: q1 (9 + 3) / (3 + 3) = 2, q3 (5 + 3) / 3 = 2.7.
        assert sent(kernel.finished(9.0, "q2-1", usage())) == ["q3"]

    def test_an_engine_that_orders_by_itself_is_told_nothing(self) -> None:
        for rule in ("ProjectedRatio", "LeastAttained", "VTC"):
            kernel = Kernel(Policy.named(f"RoundRobin+{rule}"))
            kernel.instance(0.0, an_instance(takes_priority=True))
            assert the_send(kernel.arrive(0.0, [a_call()]), "c").priority is None


class TestLevels:
    def test_they_are_counted_from_the_first_number(self) -> None:
        levels = Levels(2.0)
        assert [levels.level(number) for number in (3.0, 5.9, 6.0, 11.9, 12.0, 2.9, 1.5, 1.4)] == [
            0,
            0,
            1,
            1,
            2,
            -1,
            -1,
            -2,
        ]

    def test_a_level_stands_for_its_lower_end(self) -> None:
        levels = Levels(1.5)
        levels.level(4.0)
        assert levels.number(2) == pytest.approx(9.0)


def test_rules_that_look_at_what_was_served_keep_nothing_of_calls_that_ended() -> None:
    for name in ("VTC", "LeastAttained", "ProjectedRatio"):
        kernel = Kernel(Policy.named(f"LeastOutstanding+{name}"))
        for instance_id, profile in (("a", ONE_SLOT), ("b", SLOW)):
            kernel.instance(0.0, an_instance(instance_id, profile=profile))
        for number in range(50):
            kernel.arrive(float(number), [a_call(f"c{number}", query_id=f"q{number // 2}", tenant="t")])
            if number % 3:
                kernel.cancel(number + 0.2, f"c{number}")
            elif f"c{number}" in {r.call.call_id for i in kernel.view().instances for r in i.running}:
                kernel.finished(number + 0.5, f"c{number}", usage())
        for shown in kernel.view().instances:
            here = [run.call for run in shown.running] + [wait.call for wait in shown.queue]
            for call in here:
                kernel.cancel(60.0, call.call_id)
        rule = kernel._ordering
        assert not any(getattr(rule, "_waiting", {}).values())
        assert not getattr(rule, "_calls", {})
        assert not getattr(rule, "_charged", {})
