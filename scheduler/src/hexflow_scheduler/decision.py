"""What the kernel decides: frozen records that the router turns into HTTP and the simulator into events."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Say how a call ended. Every call that arrives ends exactly once."""

    FINISHED = "Finished"
    FAILED = "Failed"
    """The engine failed it and no attempt is left."""
    CANCELLED = "Cancelled"
    """Whoever asked does not want it any more."""
    DROPPED = "Dropped"
    """Its query is late and can do without it (``Relief.drop``)."""
    EXPIRED = "Expired"
    """No instance could take it before its time ran out."""
    UNSERVABLE = "Unservable"
    """No instance that is known could ever take it (model, pool, context length)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Put a call in the queue of an instance."""

    call_id: str
    instance_id: str
    urgency: float
    """Seconds by which the call is expected to overrun its budget; higher is more urgent."""
    predicted_seconds: float
    """Expected seconds of the call itself on that instance, waiting left out."""
    output_tokens: float
    """Expected output, the number that the prediction was made with."""
    scores: tuple[tuple[str, float], ...] = ()
    """The instances that were weighed for it with their scores, in the order considered; the largest won."""
    demoted: bool = False
    """Whether its query gives way to others, since it cannot be in time any more (``Relief.demote``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a placed call to its instance now."""

    call_id: str
    instance_id: str
    urgency: float
    """Urgency at this moment."""
    priority: int | None
    """The engine's own ``priority`` (latest start in milliseconds; lower goes first), where it takes one."""
    attempt: int
    """1 for the first try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """Stop a call that runs on an instance."""

    call_id: str
    instance_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Close a call: nothing more will be decided about it."""

    call_id: str
    outcome: Outcome
    reason: str = ""
    """Why, for a person; empty when it finished."""


Decision = Place | Send | Abort | End
