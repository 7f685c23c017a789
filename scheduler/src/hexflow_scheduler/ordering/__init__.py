"""Queue rules: in which order the calls that wait for one instance are sent. One module each.

A rule gives every call a key that does not change while it waits; it does not see other calls, so the
queue needs no re-sorting.
"""

from typing import ClassVar, Protocol

from hexflow_scheduler.active import ActiveCall


class QueueRule(Protocol):
    """Order the calls that wait for one instance."""

    name: ClassVar[str]
    """Name in resources, flags and event logs."""

    def key(self, active: ActiveCall, /) -> float:
        """Return the place of a call that was put on an instance; smaller goes first.

        ``released``, ``predicted_seconds`` and ``latest_start`` of the call are set. Equal keys go by
        arrival.
        """
        ...

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return the ``priority`` to send to an engine that takes one (lower goes first), or None."""
        ...
