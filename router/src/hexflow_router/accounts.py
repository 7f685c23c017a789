"""What became of calls and tries, told to whoever counts: the metrics, and the breakers of the instances."""

from typing import Protocol

from hexflow_router.attempt import AttemptFailed
from hexflow_router.exchange import Placement
from hexflow_router.metrics import Metrics
from hexflow_scheduler import Outcome, Usage


class Health(Protocol):
    """Who wants to know how instances answer (discovery's breakers)."""

    def answered(self, instance_id: str) -> None:
        """Note an answer, a refusal of the call included."""
        ...

    def failed(self, instance_id: str, reason: str) -> None:
        """Note that a try failed by the instance's fault."""
        ...

    def refused_priority(self, instance_id: str) -> None:
        """Note that the engine refuses the ``priority`` field."""
        ...


class Accounts:
    """Keep the books of a driver."""

    def __init__(self, metrics: Metrics) -> None:
        """Count in ``metrics``; ``health`` comes once discovery is there."""
        self.metrics = metrics
        self.health: Health | None = None

    def sent(self, placement: Placement) -> None:
        """Note a call that is sent, for the first time or again."""
        if placement.attempts > 1:
            self.metrics.count("hexflow_call_retries_total", placement.pool)
        elif placement.demoted:
            self.metrics.count("hexflow_calls_demoted_total", placement.pool)

    def first_byte(self, placement: Placement, seconds: float) -> None:
        """Note the first event of a stream."""
        self.metrics.observe("hexflow_first_byte_seconds", seconds, placement.pool)

    def succeeded(self, placement: Placement) -> None:
        """Note an answer that came whole."""
        if self.health:
            self.health.answered(placement.instance_id)

    def failed(self, placement: Placement, failure: AttemptFailed) -> None:
        """Note a try that failed, whoever is to blame."""
        self.metrics.count("hexflow_call_failures_total", placement.pool, failure.reason)
        if self.health is None:
            return
        if failure.blames_instance:
            self.health.failed(placement.instance_id, failure.reason)
        elif failure.answer is not None:
            self.health.answered(placement.instance_id)

    def refused_priority(self, placement: Placement) -> None:
        """Note an engine that takes no ``priority``."""
        if self.health:
            self.health.refused_priority(placement.instance_id)

    def finished(self, placement: Placement, usage: Usage, *, source: str, now: float) -> None:
        """Note the times and tokens of an answered call."""
        pool = placement.pool
        self.metrics.observe("hexflow_call_seconds", now - placement.sent_at, pool)
        self.metrics.observe("hexflow_call_queued_seconds", placement.queued_seconds, pool)
        self.metrics.count("hexflow_tokens_total", pool, "prompt", source, by=usage.prompt_tokens)
        self.metrics.count("hexflow_tokens_total", pool, "output", source, by=usage.output_tokens)
        if usage.cached_tokens:
            self.metrics.count("hexflow_tokens_total", pool, "cached", source, by=usage.cached_tokens)

    def ended(self, placement: Placement | None, outcome: Outcome) -> None:
        """Note how a call ended."""
        self.metrics.count("hexflow_calls_total", placement.pool if placement else "none", outcome)
