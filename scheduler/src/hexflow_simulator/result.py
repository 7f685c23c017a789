"""What a simulation reports: frozen records without behaviour; ``measure`` makes figures of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """Say what became of a query. Instants are seconds from the start of the trace."""

    query_id: str
    workflow: str
    tenant: str
    arrival: float
    finished: float | None
    """When it was answered; None where it failed."""
    slo_seconds: float | None
    base_seconds: float | None
    calls: int
    """Calls that were released for it."""
    reason: str = ""
    """Why it has no answer; empty where it has one."""

    @property
    def latency(self) -> float | None:
        """Seconds from its arrival to its answer; None where there was none."""
        return None if self.finished is None else self.finished - self.arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """Say what became of a call. Instants are seconds from the start of the trace, lengths are tokens."""

    call_id: str
    query_id: str
    stage: str
    instance_id: str
    """Where it ran last; empty where it never ran."""
    released: float
    placed: float
    """When it was last put on an instance."""
    sent: float
    """When it was last sent."""
    first_token: float
    finished: float
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    attempts: int
    outcome: str
    """``hexflow_scheduler.Outcome``. Only where it is Finished are first token and cached tokens the engine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """Report a simulation."""

    policy: str
    """Name of the policy."""
    queries: tuple[QueryResult, ...]
    """By arrival; empty where each was handed on as it ended."""
    calls: tuple[CallResult, ...]
    """By their ends; empty unless they were asked for."""
    query_count: int
    call_count: int
    """Calls that ended, whatever their outcome."""
    failed_calls: int
    """Calls that ended without an answer, those that were dropped to relieve the fleet left out."""
    retries: int
    prompt_tokens: int
    """Of finished calls."""
    cached_tokens: int
    output_tokens: int
    ended: float
    """When the last query ended."""
