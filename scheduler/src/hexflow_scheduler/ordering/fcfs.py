"""First come, first served: in order of arrival.

Models vLLM (``--scheduling-policy fcfs``, its default) and every plain server. What a failure sends back keeps
the place of its arrival.
"""

from typing import ClassVar

from hexflow_scheduler.active import ActiveCall


class FCFS:
    """Order calls by their arrival. The engine, being of the same mind, needs no priority."""

    name: ClassVar[str] = "FCFS"

    def key(self, active: ActiveCall, /) -> float:
        """Return the instant of arrival."""
        return active.released

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return None: an engine left alone serves in order of arrival."""
        return None
