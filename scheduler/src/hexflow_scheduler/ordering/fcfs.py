"""First come, first served: what vLLM and every plain server do."""

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
