"""Parked calls: those that no instance can take now, with the instants at which they are given up."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from hexflow_scheduler.active import ActiveCall


class Parking:
    """Hold parked calls in the order they were parked."""

    __slots__ = ("_alarms", "_calls")

    def __init__(self) -> None:
        self._calls: dict[str, ActiveCall] = {}
        self._alarms: list[tuple[float, int, ActiveCall]] = []

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[ActiveCall]:
        return iter(self._calls.values())

    def add(self, active: ActiveCall, *, until: float) -> None:
        """Park a call until an instant."""
        active.park_until = until
        self._calls[active.call.call_id] = active
        heappush(self._alarms, (until, active.order, active))

    def remove(self, active: ActiveCall) -> None:
        """Take a call out, if it is here."""
        if self._calls.pop(active.call.call_id, None) is None:
            return
        active.park_until = None
        if len(self._alarms) > 2 * len(self._calls) + 8:
            self._alarms = [entry for entry in self._alarms if self._is_current(entry)]
            heapify(self._alarms)

    def next_alarm(self) -> float | None:
        """Return the first instant at which a parked call is given up; None where none is parked."""
        while self._alarms and not self._is_current(self._alarms[0]):
            heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else None

    def due(self, now: float) -> list[ActiveCall]:
        """Take out the calls whose time has come."""
        calls = []
        while (alarm := self.next_alarm()) is not None and alarm <= now:
            active = self._alarms[0][2]
            self.remove(active)
            calls.append(active)
        return calls

    def _is_current(self, entry: tuple[float, int, ActiveCall]) -> bool:
        until, _, active = entry
        return active.park_until == until and active.call.call_id in self._calls
