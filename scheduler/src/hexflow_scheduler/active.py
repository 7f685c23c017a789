"""A live call as the kernel keeps it, and the query it works for: what is known and was decided so far.

Dispatch rules read these; only the kernel and the fleet write them.
"""

from dataclasses import dataclass, field
from enum import Enum

from hexflow_scheduler.call import Call, PrefixBlock, RestClass


class Phase(Enum):
    """Say where a live call is."""

    PARKED = "Parked"
    """No instance can take it now."""
    WAITING = "Waiting"
    """In the queue of an instance, not sent."""
    RUNNING = "Running"
    """Sent to its instance."""


@dataclass(slots=True, weakref_slot=True, eq=False, kw_only=True)
class OpenQuery:
    """Keep the state of a query that has calls or may get more. Instants are seconds since the epoch."""

    query_id: str
    workflow: str
    arrival: float
    calls: "dict[str, ActiveCall]" = field(default_factory=dict)
    """Its live calls by id."""
    ends: dict[RestClass, float] = field(default_factory=dict)
    """When a call of each class last finished: once the query has ended, what teaches how long the rest took."""
    slo_seconds: float = 0.0
    """Seconds it may take in all (``Fleet.slo_seconds``); 0 until its first call is put on an instance."""
    notes: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """What queue rules remember of it, each under its name."""
    demoted: bool = False
    """Whether it gives way, since it cannot be in time (``relief.py``)."""
    ended: bool = False
    """Whether its end was reported; what still lives of it is forgotten with its last call."""


@dataclass(slots=True, eq=False, kw_only=True)
class ActiveCall:
    """Keep the state of one live call. Instants are seconds since the epoch."""

    call: Call
    query: OpenQuery
    order: int
    """Rank among all arrivals: decides between equals."""
    released: float
    """When it arrived; its waiting counts from here, whatever happened since."""
    output_tokens: float
    """Expected output of one sample."""
    rest_seconds: float = 0.0
    """Expected seconds from its end to the end of its query."""
    allowed: float | None = None
    """Seconds it may take from its release (t_slo); set when it is first put on an instance."""
    park_until: float | None = None
    """When it expires if it is still parked then."""
    phase: Phase = Phase.PARKED
    instance_id: str | None = None
    """The instance it waits for or runs on; None while it is parked."""
    predicted_seconds: float = 0.0
    """Expected seconds of the call itself on that instance, waiting left out."""
    prefill_seconds: float = 0.0
    """Expected seconds of the prefill in it."""
    prefill_work: float = 0.0
    """The same by the profile alone, without what was learned about the instance."""
    alone_seconds: float = 0.0
    """Expected seconds of it there if nothing else ran."""
    latest_start: float = 0.0
    """Instant at which its urgency there passes zero."""
    key: float = 0.0
    """Place in the queue; smaller goes first."""
    blocks: tuple[PrefixBlock, ...] = ()
    """Leading blocks of its prompt that the instance shares among calls."""
    kv_tokens: int = 0
    """Tokens of KV cache it is expected to hold at its end, those blocks left out."""
    sent: float | None = None
    """When it was last sent."""
    predicted_finish: float = 0.0
    """When it is expected to end; only meaningful once sent."""
    reading: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """What its instance's meters showed when it was sent (``InstanceLoad.reading``)."""
    cached_tokens: int = 0
    """Prompt tokens that were expected in the prefix cache when it was put or sent there."""
    attempt: int = 0
    """Times it was sent."""
    failed_on: set[str] = field(default_factory=set)
    """Instances that failed it."""
