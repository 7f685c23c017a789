"""A kernel that writes its event log as it goes."""

from collections.abc import Callable, Sequence
from typing import Any

from hexflow_scheduler.call import Call, Usage
from hexflow_scheduler.decision import Decision
from hexflow_scheduler.errors import InvalidInput
from hexflow_scheduler.estimate import Estimates
from hexflow_scheduler.eventlog import Record, encode, start_record
from hexflow_scheduler.instance import Instance
from hexflow_scheduler.kernel import Kernel
from hexflow_scheduler.parameter import Parameters
from hexflow_scheduler.policy import Policy
from hexflow_scheduler.view import KernelView


class RecordingKernel:
    """Wrap a kernel that was told nothing yet: the same methods, and a line to ``sink`` for each input.

    ``sink`` gets lines without their ends and must not raise. An input that the kernel refuses is not
    recorded, since it changes nothing.
    """

    def __init__(self, kernel: Kernel, sink: Callable[[str], None]) -> None:
        if not kernel.untouched:
            raise InvalidInput("this kernel has had inputs already; record it from its first one")
        self._kernel = kernel
        self._sink = sink
        self._sequence = 0
        sink(encode(start_record(kernel)))

    @property
    def policy(self) -> Policy:
        """The kernel's policy."""
        return self._kernel.policy

    @property
    def estimates(self) -> Estimates:
        """What the kernel learned."""
        return self._kernel.estimates

    @property
    def max_attempts(self) -> int:
        """Times a call is sent at most."""
        return self._kernel.max_attempts

    def instance(self, now: float, instance: Instance) -> tuple[Decision, ...]:
        """See ``Kernel.instance``."""
        return self._record(now, "instance", instance=instance)

    def arrive(self, now: float, calls: Sequence[Call]) -> tuple[Decision, ...]:
        """See ``Kernel.arrive``."""
        return self._record(now, "arrive", calls=tuple(calls))

    def finished(self, now: float, call_id: str, usage: Usage) -> tuple[Decision, ...]:
        """See ``Kernel.finished``."""
        return self._record(now, "finished", call_id=call_id, usage=usage)

    def failed(self, now: float, call_id: str, *, reason: str, retryable: bool) -> tuple[Decision, ...]:
        """See ``Kernel.failed``."""
        return self._record(now, "failed", call_id=call_id, reason=reason, retryable=retryable)

    def cancel(self, now: float, call_id: str) -> tuple[Decision, ...]:
        """See ``Kernel.cancel``."""
        return self._record(now, "cancel", call_id=call_id)

    def wake(self, now: float) -> tuple[Decision, ...]:
        """See ``Kernel.wake``."""
        return self._record(now, "wake")

    def load(self, now: float, instance_id: str, foreign_running: int) -> tuple[Decision, ...]:
        """See ``Kernel.load``."""
        return self._record(now, "load", instance_id=instance_id, foreign_running=foreign_running)

    def parameters(self, now: float, parameters: Parameters, *, workflow: str = "") -> tuple[Decision, ...]:
        """See ``Kernel.parameters``."""
        return self._record(now, "parameters", parameters=parameters, workflow=workflow)

    def next_wake(self) -> float | None:
        """See ``Kernel.next_wake``."""
        return self._kernel.next_wake()

    def can_serve(self, model: str, pools: frozenset[str] | None = None, tokens: int = 0) -> bool:
        """See ``Kernel.can_serve``."""
        return self._kernel.can_serve(model, pools, tokens)

    def stage_seconds(
        self, workflow: str, stage: str, model: str, pools: frozenset[str] | None = None
    ) -> float:
        """See ``Kernel.stage_seconds``."""
        return self._kernel.stage_seconds(workflow, stage, model, pools)

    def view(self) -> KernelView:
        """See ``Kernel.view``."""
        return self._kernel.view()

    def _record(self, now: float, name: str, **arguments: Any) -> tuple[Decision, ...]:
        decisions: tuple[Decision, ...] = getattr(self._kernel, name)(now, **arguments)
        self._sequence += 1
        self._sink(
            encode(
                Record(sequence=self._sequence, now=now, input=name, arguments=arguments, decisions=decisions)
            )
        )
        return decisions
