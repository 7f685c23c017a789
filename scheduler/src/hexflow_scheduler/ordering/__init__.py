"""Queue rules: in which order the calls that wait for one instance are sent. One module each.

Most rules give every call a key that does not change while it waits, so that its queue needs no
re-sorting. A ``MovingRule`` orders groups of calls instead, whose places may change at any time.
"""

from collections.abc import Hashable
from typing import ClassVar, Protocol, runtime_checkable

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.call import Usage


class QueueRule(Protocol):
    """Order the calls that wait for one instance."""

    name: ClassVar[str]
    """Name in resources, flags and event logs."""

    def key(self, active: ActiveCall, /) -> float:
        """Return the place of a call that was put on an instance; smaller goes first.

        ``released``, ``predicted_seconds`` and ``latest_start`` of the call are set. Equal keys go by
        arrival. Under a moving rule it is the place within the call's group.
        """
        ...

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return the ``priority`` to send to an engine that takes one (lower goes first), or None."""
        ...


@runtime_checkable
class MovingRule(QueueRule, Protocol):
    """Order groups of waiting calls, each time that one can be sent.

    Within a group the keys decide and stand still. The groups are few, however many calls wait: tenants,
    classes, levels.
    """

    def group(self, active: ActiveCall, /) -> Hashable:
        """Return the group that a call belongs to while it waits for the instance it was just put on."""
        ...

    def place(self, now: float, head: ActiveCall, /) -> float:
        """Return the place of a group now, given its first call; the smallest goes first.

        Equal places go by the keys of their first calls.
        """
        ...


@runtime_checkable
class Watcher(Protocol):
    """Be told what becomes of calls, in the order of the kernel's inputs: what a rule may learn from."""

    def sent(self, now: float, active: ActiveCall, /) -> None:
        """Take note that a call was sent; it may be sent again after a failure."""
        ...

    def ended(self, now: float, active: ActiveCall, usage: Usage | None, /) -> None:
        """Take note that a call is over; ``usage`` is None unless it was answered."""
        ...
