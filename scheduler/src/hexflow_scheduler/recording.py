"""A kernel that writes its event log as it goes."""

from collections.abc import Callable, Sequence
from typing import Any

from hexflow_scheduler.call import Call, Usage
from hexflow_scheduler.decision import Decision
from hexflow_scheduler.estimate import Estimates
from hexflow_scheduler.eventlog import Record, encode, start_record
from hexflow_scheduler.instance import Instance
from hexflow_scheduler.kernel import Kernel
from hexflow_scheduler.parameter import Parameters
from hexflow_scheduler.policy import Policy


class RecordingKernel(Kernel):
    """Decide as a kernel does, and give ``sink`` a line for the start and for each input.

    ``sink`` gets lines without their ends and must not raise. An input that is refused is not recorded,
    since it changes nothing.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        estimates: Estimates | None = None,
        max_attempts: int = 3,
        *,
        sink: Callable[[str], None],
    ) -> None:
        super().__init__(policy, estimates, max_attempts)
        self._sink = sink
        self._sequence = 0
        sink(encode(start_record(self)))

    def instance(self, now: float, instance: Instance) -> tuple[Decision, ...]:
        """See ``Kernel.instance``."""
        return self._recorded("instance", now, super().instance(now, instance), instance=instance)

    def arrive(self, now: float, calls: Sequence[Call]) -> tuple[Decision, ...]:
        """See ``Kernel.arrive``."""
        return self._recorded("arrive", now, super().arrive(now, calls), calls=tuple(calls))

    def finished(self, now: float, call_id: str, usage: Usage) -> tuple[Decision, ...]:
        """See ``Kernel.finished``."""
        decisions = super().finished(now, call_id, usage)
        return self._recorded("finished", now, decisions, call_id=call_id, usage=usage)

    def failed(self, now: float, call_id: str, *, reason: str, retryable: bool) -> tuple[Decision, ...]:
        """See ``Kernel.failed``."""
        decisions = super().failed(now, call_id, reason=reason, retryable=retryable)
        return self._recorded("failed", now, decisions, call_id=call_id, reason=reason, retryable=retryable)

    def cancel(self, now: float, call_id: str) -> tuple[Decision, ...]:
        """See ``Kernel.cancel``."""
        return self._recorded("cancel", now, super().cancel(now, call_id), call_id=call_id)

    def query_ended(self, now: float, query_id: str, *, answered: bool = True) -> tuple[Decision, ...]:
        """See ``Kernel.query_ended``."""
        decisions = super().query_ended(now, query_id, answered=answered)
        return self._recorded("query_ended", now, decisions, query_id=query_id, answered=answered)

    def wake(self, now: float) -> tuple[Decision, ...]:
        """See ``Kernel.wake``."""
        return self._recorded("wake", now, super().wake(now))

    def load(self, now: float, instance_id: str, foreign_running: int) -> tuple[Decision, ...]:
        """See ``Kernel.load``."""
        decisions = super().load(now, instance_id, foreign_running)
        return self._recorded(
            "load", now, decisions, instance_id=instance_id, foreign_running=foreign_running
        )

    def parameters(self, now: float, parameters: Parameters, *, workflow: str = "") -> tuple[Decision, ...]:
        """See ``Kernel.parameters``."""
        decisions = super().parameters(now, parameters, workflow=workflow)
        return self._recorded("parameters", now, decisions, parameters=parameters, workflow=workflow)

    def _recorded(
        self, name: str, now: float, decisions: tuple[Decision, ...], **arguments: Any
    ) -> tuple[Decision, ...]:
        self._sequence += 1
        record = Record(
            sequence=self._sequence, now=now, input=name, arguments=arguments, decisions=decisions
        )
        self._sink(encode(record))
        return decisions
