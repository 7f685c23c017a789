"""What is under way in a simulation: queries and calls that have arrived and not ended, with their truth."""

from collections.abc import Sequence

from hexflow_scheduler import Call, Progress, StageTemplate, WorkflowTemplate
from hexflow_simulator.query import SimulatedCall, SimulatedQuery, SimulatedStage

Templates = dict[tuple[tuple[str, tuple[str, ...]], ...], WorkflowTemplate]
"""Templates by the names of their stages and what each comes after: few, however many queries there are."""


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


class Pause:
    """Hold calls of a stage back until a pause is over; without calls, the end of the query."""

    __slots__ = ("of", "rank", "stage", "truths")

    def __init__(self, of: QueryUnderWay, stage: str, truths: Sequence[SimulatedCall], rank: int) -> None:
        self.of = of
        self.stage = stage
        self.truths = truths
        self.rank = rank


def under_way(query: SimulatedQuery, *, rank: int, templates: Templates, cap: float | None) -> QueryUnderWay:
    """Return a query as it arrives, which expires at ``cap`` times its SLO; ``templates`` gets its shape, if new."""
    shape = tuple([(stage.name, stage.after) for stage in query.stages])
    template = templates.get(shape)
    if template is None:
        template = WorkflowTemplate(tuple(StageTemplate(name, after) for name, after in shape))
        templates[shape] = template
    deadline = expires = None
    if query.slo_seconds is not None:
        deadline = query.arrival + query.slo_seconds
        expires = query.arrival + query.slo_seconds * (cap or 1e9)
    progress = Progress(template, query.arrival, deadline)
    return QueryUnderWay(query, rank=rank, progress=progress, expires=expires)
