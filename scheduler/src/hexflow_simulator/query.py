"""What arrives in a simulation: queries with the true lengths of their calls, which no policy sees.

Frozen records without behaviour; generators and trace files make them, the simulation runs them.
"""

from dataclasses import dataclass

from hexflow_scheduler import PrefixBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCall:
    """Describe one call. Lengths are tokens."""

    prompt_tokens: int
    output_tokens: int
    """What it will really write."""
    max_tokens: int = 4096
    prefix: tuple[PrefixBlock, ...] = ()
    """Leading blocks of its prompt that others may share, in order (template, schema, question)."""
    then: tuple["SimulatedCall", ...] = ()
    """Calls that its end releases, within the same stage (a chain of corrections)."""
    pause_seconds: float = 0.0
    """From the end of what it comes after to its release, while no engine has to do with the query: a statement
    runs, an answer is on its way. Calls with the same pause are released together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedStage:
    """Describe one stage: its calls are released when those of ``after`` are all done, together unless they pause."""

    name: str
    calls: tuple[SimulatedCall, ...]
    """May be empty: the stage is skipped."""
    after: tuple[str, ...] = ()
    """Names of earlier stages; empty means the one just before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedQuery:
    """Describe one query."""

    query_id: str
    arrival: float
    """Instant, in seconds from the start of the trace."""
    stages: tuple[SimulatedStage, ...]
    model: str
    workflow: str = ""
    tenant: str = ""
    tenant_weight: float = 1.0
    pools: frozenset[str] | None = None
    """Pools that may serve it; None admits every pool."""
    slo_seconds: float | None = None
    """Its end-to-end deadline, from its arrival; None where nobody stated one."""
    base_seconds: float | None = None
    """What its SLO scale is measured by (Req95 = the smallest multiple of it with 95 % in time)."""
    closing_seconds: float = 0.0
    """From the end of its last call to its answer."""
