from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.queue import WaitingQueue
from support.calls import a_call, an_active_call


def waiting(order: int, key: float) -> ActiveCall:
    return an_active_call(a_call(f"c{order}"), order=order, key=key)


def test_the_smallest_key_is_first_and_equals_go_by_arrival() -> None:
    queue = WaitingQueue()
    for order, key in enumerate((5.0, 1.0, 3.0, 1.0)):
        queue.push(waiting(order, key))
    assert [item.order for item in queue.ordered(0.0)] == [1, 3, 2, 0]
    first = queue.first(0.0)
    assert first is not None
    assert first.order == 1
    assert len(queue) == 4


def test_a_removed_call_never_comes_up() -> None:
    queue = WaitingQueue()
    items = [waiting(order, float(order)) for order in range(3)]
    for item in items:
        queue.push(item)
    queue.remove(items[0])
    assert queue.first(0.0) is items[1]
    assert "c0" not in queue
    assert "c1" in queue


def test_a_call_that_is_put_back_has_its_new_place() -> None:
    queue = WaitingQueue()
    first, second = waiting(0, 1.0), waiting(1, 2.0)
    queue.push(first)
    queue.push(second)
    queue.remove(first)
    first.key = 3.0
    queue.push(first)
    assert queue.ordered(0.0) == [second, first]
    assert queue.first(0.0) is second


def test_an_empty_queue_has_no_first() -> None:
    assert WaitingQueue().first(0.0) is None


def test_removed_calls_do_not_pile_up() -> None:
    queue = WaitingQueue()
    kept = waiting(0, 0.0)
    queue.push(kept)
    for order in range(1, 10_000):
        item = waiting(order, float(order))
        queue.push(item)
        queue.remove(item)
    assert queue.entries < 50
