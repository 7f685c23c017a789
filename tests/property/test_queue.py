"""The heap with lazy deletion orders as sorting everything again would."""

from hypothesis import given
from hypothesis import strategies as st

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.queue import WaitingQueue
from hexflow_scheduler.urgency import latest_start, urgency
from support.calls import a_call, an_active_call

SECONDS = st.floats(0.0, 600.0)


@given(st.data())
def test_urgency_order_equals_a_naive_sort_under_cancels_moves_and_new_estimates(data: st.DataObject) -> None:
    queues = [WaitingQueue(), WaitingQueue()]
    where: dict[int, int] = {}
    calls: dict[int, ActiveCall] = {}
    allowed: dict[int, float] = {}
    compute: dict[int, float] = {}
    now = 1_700_000_000.0

    def estimate(order: int) -> None:
        compute[order] = data.draw(SECONDS)
        calls[order].key = latest_start(
            released=calls[order].released, allowed=allowed[order], compute_seconds=compute[order]
        )

    for order in range(data.draw(st.integers(1, 60))):
        now += data.draw(st.floats(0.0, 5.0))
        calls[order] = an_active_call(a_call(f"c{order}"), order=order, released=now)
        allowed[order] = data.draw(SECONDS)
        estimate(order)
        where[order] = data.draw(st.integers(0, 1))
        queues[where[order]].push(calls[order])

        order = data.draw(st.sampled_from(sorted(where)))
        match data.draw(st.sampled_from(["cancel", "move", "estimate", "pop", "nothing"])):
            case "cancel":
                queues[where.pop(order)].remove(calls[order])
            case "move":
                queues[where[order]].remove(calls[order])
                where[order] = 1 - where[order]
                estimate(order)
                queues[where[order]].push(calls[order])
            case "estimate":
                queues[where[order]].remove(calls[order])
                estimate(order)
                queues[where[order]].push(calls[order])
            case "pop":
                first = queues[where[order]].first(now)
                assert first is not None
                queues[where.pop(first.order)].remove(first)

        for number, queue in enumerate(queues):
            # The paper's definition, evaluated anew for every call at this instant.
            here = [each for each, place in where.items() if place == number]
            naive = sorted(
                here,
                key=lambda each: (-(compute[each] - (allowed[each] - (now - calls[each].released))), each),
            )
            ours = [item.order for item in queue.ordered(now)]
            assert len(ours) == len(naive)
            for mine, theirs in zip(ours, naive, strict=True):
                # Floats near 1.7e9 resolve 0.24 µs: calls closer than that are equals.
                assert mine == theirs or abs(calls[mine].key - calls[theirs].key) < 1e-6
            first = queue.first(now)
            assert (first.order if first else None) == (ours[0] if ours else None)
            if first:
                assert urgency(now, first.key) == max(urgency(now, calls[each].key) for each in here)
