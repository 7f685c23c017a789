"""A queue of waiting calls: a heap with a static key and lazy deletion.

It orders; it does not know what the key means (``ordering/`` does) nor why a call waits.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from hexflow_scheduler.active import ActiveCall


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

    def __iter__(self) -> Iterator[ActiveCall]:
        """Go through the calls, the most urgent first (sorts: for views and rare events)."""
        return (entry[2] for entry in sorted(self._members.values()))

    @property
    def entries(self) -> int:
        """Entries of the heap, those of removed calls included."""
        return len(self._heap)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._members

    def push(self, item: ActiveCall) -> None:
        """Add a call at its key."""
        entry = (item.key, item.order, item)
        self._members[item.call.call_id] = entry
        heappush(self._heap, entry)

    def first(self) -> ActiveCall | None:
        """Return the call that goes next, without taking it; None when empty."""
        heap = self._heap
        while heap:
            entry = heap[0]
            if self._members.get(entry[2].call.call_id) is entry:
                return entry[2]
            heappop(heap)
        return None

    def remove(self, item: ActiveCall) -> None:
        """Take a call out, wherever it is."""
        del self._members[item.call.call_id]
        if len(self._heap) > 2 * len(self._members) + 8:
            self._heap = list(self._members.values())
            heapify(self._heap)
