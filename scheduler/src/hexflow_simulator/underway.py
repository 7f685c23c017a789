"""What is under way in a simulation: queries and calls that have arrived and not ended, with their truth."""

from hexflow_scheduler import Call, Progress
from hexflow_simulator.query import SimulatedCall, SimulatedQuery, SimulatedStage


class QueryUnderWay:
    """Follow a query."""

    __slots__ = (
        "arrival",
        "calls",
        "closed",
        "deadline",
        "expires",
        "live",
        "open",
        "progress",
        "query",
        "rank",
        "stages",
    )

    def __init__(
        self, query: SimulatedQuery, *, rank: int, progress: Progress, expires: float | None
    ) -> None:
        self.query = query
        self.rank = rank
        self.arrival = query.arrival
        self.deadline = progress.deadline
        self.expires = expires
        self.progress = progress
        self.stages: dict[str, SimulatedStage] = {stage.name: stage for stage in query.stages}
        self.open: dict[str, int] = {}
        """Calls of each running stage that have not ended."""
        self.live: dict[str, CallUnderWay] = {}
        self.calls = 0
        self.closed = False


class CallUnderWay:
    """Follow a call."""

    __slots__ = (
        "attempts",
        "cached_tokens",
        "call",
        "first_token",
        "instance_id",
        "of",
        "output_tokens",
        "placed",
        "released",
        "sent",
        "truth",
    )

    def __init__(self, call: Call, truth: SimulatedCall, of: QueryUnderWay, released: float) -> None:
        self.call = call
        self.truth = truth
        self.of = of
        self.released = released
        self.placed = released
        self.sent = released
        self.first_token = released
        self.instance_id = ""
        self.attempts = 0
        self.cached_tokens = 0
        self.output_tokens = 0
