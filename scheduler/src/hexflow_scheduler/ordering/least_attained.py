"""Least attained service: the program that was served least goes first (ATLAS).

Source: Luo et al., "Autellix: An Efficient Serving Engine for LLM Agents as General Programs" (arXiv
2502.13965), section 4.2. A program's service is its longest observed critical path: a call begins with the
service that its program has when it is released, and a finished call raises the program's to its own
beginning plus the seconds it ran. Calls wait in levels that grow by a factor, those of less service
first, each level in order of arrival. A program that has waited too long for what it was served goes to
the first level. A program is a query here. Nothing is known of lengths: the rule is not clairvoyant.

Where it differs: the authors move a call down while it runs and preempt it; a call that the kernel sent
runs to its end. Their bounds of levels are configured seconds; here they are powers of two of the first
service seen, so that they fit any model. A level is lifted when its first call has waited too long.
Their balancer, which sends long calls back to the engine of their program, is a matter of dispatch.
"""

from collections.abc import Hashable
from math import inf
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.call import Usage
from hexflow_scheduler.levels import Levels

STEP = 2.0
"""Ratio of the bounds of neighbouring levels."""
STARVING = 4.0
"""Seconds waited for each second served from which a query goes first (the paper's beta)."""

NOTHING = (0.0, 0.0)
"""Service and waiting of a query that begins."""


class LeastAttained:
    """Order calls by the level of what their queries were served, and each level by arrival."""

    name: ClassVar[str] = "LeastAttained"

    def __init__(self) -> None:
        self._levels = Levels(STEP)
        self._calls: dict[str, tuple[float, ...]] = {}
        """Seconds of service and of waiting along its query's longest path, as each live call was released."""

    def key(self, active: ActiveCall, /) -> float:
        """Return the instant of arrival."""
        self._calls.setdefault(active.call.call_id, active.query.notes.get(self.name, NOTHING))
        return active.released

    def group(self, active: ActiveCall, /) -> Hashable:
        """Return the level, None for a query that was not served yet."""
        service, _ = self._calls[active.call.call_id]
        return self._levels.level(service) if service > 0 else None

    def place(self, now: float, head: ActiveCall, /) -> float:
        """Return the level; the first for one that starves."""
        service, waited = self._calls[head.call.call_id]
        # Equal times may differ in their last bit with the unit.
        if service <= 0 or round((waited + now - head.released) / service, 6) >= STARVING:
            return -inf
        return self._levels.level(service)

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return None: an engine left alone serves in the order in which it was sent calls."""
        return None

    def sent(self, now: float, active: ActiveCall, /) -> None:
        """Nothing is learned from that."""

    def ended(self, now: float, active: ActiveCall, usage: Usage | None, /) -> None:
        """Raise the query's service to the end of this call's path, if it was answered."""
        service, waited = self._calls.pop(active.call.call_id, NOTHING)
        if usage is None or active.sent is None:
            return
        path = service + now - active.sent, waited + active.sent - active.released
        active.query.notes[self.name] = max(path, active.query.notes.get(self.name, NOTHING))
