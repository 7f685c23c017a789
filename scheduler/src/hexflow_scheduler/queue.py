"""Queues of waiting calls: a heap with a static key and lazy deletion, and a few of them side by side.

They order; they do not know what a key means (``ordering/`` does) nor why a call waits.
"""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Protocol

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.ordering import MovingRule, QueueRule


class Queue(Protocol):
    """Hold the calls that wait for one instance."""

    def __len__(self) -> int: ...

    def __contains__(self, call_id: str) -> bool: ...

    @property
    def entries(self) -> int:
        """Entries that it keeps, those of removed calls included."""
        ...

    def push(self, item: ActiveCall, /) -> None:
        """Add a call at its key."""
        ...

    def first(self, now: float, /) -> ActiveCall | None:
        """Return the call that goes next, without taking it; None when empty."""
        ...

    def remove(self, item: ActiveCall, /) -> None:
        """Take a call out, wherever it is."""
        ...

    def ordered(self, now: float, /) -> list[ActiveCall]:
        """Return the calls as they stand now (sorts: for views and rare events)."""
        ...


class WaitingQueue:
    """Hold waiting calls, the smallest ``(key, order)`` first.

    Push and pop take O(log n). Removal leaves its entry behind, which is dropped when it comes up or
    when such entries outnumber the living.
    """

    __slots__ = ("_heap", "_members")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, ActiveCall]] = []
        self._members: dict[str, tuple[float, int, ActiveCall]] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._members

    @property
    def entries(self) -> int:
        """Entries of the heap, those of removed calls included."""
        return len(self._heap)

    def push(self, item: ActiveCall, /) -> None:
        """Add a call at its key."""
        entry = (item.key, item.order, item)
        self._members[item.call.call_id] = entry
        heappush(self._heap, entry)

    def first(self, now: float, /) -> ActiveCall | None:
        """Return the call that goes next, without taking it; None when empty."""
        heap = self._heap
        while heap:
            entry = heap[0]
            if self._members.get(entry[2].call.call_id) == entry:  # compiled, a tuple has no identity
                return entry[2]
            heappop(heap)
        return None

    def remove(self, item: ActiveCall, /) -> None:
        """Take a call out, wherever it is."""
        del self._members[item.call.call_id]
        if len(self._heap) > 2 * len(self._members) + 8:
            self._heap = list(self._members.values())
            heapify(self._heap)

    def ordered(self, now: float, /) -> list[ActiveCall]:
        """Return the calls, the smallest key first."""
        return [entry[2] for entry in sorted(self._members.values())]


class GroupedQueue:
    """Hold waiting calls by groups, each a heap; the rule says which group goes next.

    Push and removal take O(log n); finding the first takes a look at each group's head.
    """

    __slots__ = ("_groups", "_rule", "_where")

    def __init__(self, rule: MovingRule) -> None:
        self._rule = rule
        self._groups: dict[Hashable, WaitingQueue] = {}
        self._where: dict[str, Hashable] = {}

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._where

    @property
    def entries(self) -> int:
        """Entries of all heaps, those of removed calls included."""
        return sum(group.entries for group in self._groups.values())

    def push(self, item: ActiveCall, /) -> None:
        """Add a call to its group."""
        group = self._rule.group(item)
        self._where[item.call.call_id] = group
        self._groups.setdefault(group, WaitingQueue()).push(item)

    def first(self, now: float, /) -> ActiveCall | None:
        """Return the head of the group that goes next; None when empty."""
        return min(self._heads(now), key=lambda head: self._place(now, head), default=None)

    def remove(self, item: ActiveCall, /) -> None:
        """Take a call out, wherever it is."""
        group = self._where.pop(item.call.call_id)
        self._groups[group].remove(item)
        if not self._groups[group]:
            del self._groups[group]

    def ordered(self, now: float, /) -> list[ActiveCall]:
        """Return the calls in the order in which they would be sent now, were nothing learned from the sending."""
        rest = [iter(group.ordered(now)) for group in self._groups.values()]
        heads = [(self._place(now, head), head, group) for group in rest if (head := next(group, None))]
        heapify(heads)
        items = []
        while heads:
            _, head, group = heappop(heads)
            items.append(head)
            if following := next(group, None):
                heappush(heads, (self._place(now, following), following, group))
        return items

    def _heads(self, now: float) -> list[ActiveCall]:
        return [_head(group, now) for group in self._groups.values()]

    def _place(self, now: float, head: ActiveCall) -> tuple[float, float, int]:
        return self._rule.place(now, head), head.key, head.order


def queue_for(rule: QueueRule) -> Queue:
    """Return an empty queue in the order of a rule."""
    return GroupedQueue(rule) if isinstance(rule, MovingRule) else WaitingQueue()


def _head(group: WaitingQueue, now: float) -> ActiveCall:
    head = group.first(now)
    assert head is not None, "a group that is kept has calls"  # noqa: S101
    return head
