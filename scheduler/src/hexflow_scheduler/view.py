"""What the kernel shows of itself: frozen copies for people, metrics and tests."""

from collections.abc import Mapping
from dataclasses import dataclass

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.call import Call
from hexflow_scheduler.cost import Speed
from hexflow_scheduler.instance import Instance
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameters
from hexflow_scheduler.urgency import urgency


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCall:
    """Show a call in an instance's queue."""

    call: Call
    urgency: float
    """Seconds by which it is expected to overrun its budget, now."""
    key: float
    """Its place in the queue; smaller goes first."""
    waited_seconds: float
    predicted_seconds: float
    output_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCall:
    """Show a call that an instance runs."""

    call: Call
    sent: float
    attempt: int
    predicted_finish: float
    output_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceView:
    """Show an instance and what it is busy with."""

    instance: Instance
    speed: Speed
    queue: tuple[WaitingCall, ...]
    """In the order in which they will be sent."""
    running: tuple[RunningCall, ...]
    free_slots: int
    free_kv_tokens: int
    foreign_running: int
    queue_seconds: float
    """Seconds of all that waits here and of what is left of what runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelView:
    """Show all that the kernel knows."""

    now: float
    """Instant of its last input."""
    policy: str
    parameters: Parameters
    """In force where a workflow has none of its own."""
    workflow_parameters: Mapping[str, Parameters]
    instances: tuple[InstanceView, ...]
    parked: tuple[Call, ...]
    """Calls that no instance can take now, in the order they arrived."""
    open_queries: int = 0
    """Queries that have calls, or had some and were not told to have ended."""


def instance_view(now: float, load: InstanceLoad) -> InstanceView:
    """Return a copy of an instance's state."""
    return InstanceView(
        instance=load.instance,
        speed=load.speed,
        queue=tuple(_waiting(now, active) for active in load.queue.ordered(now)),
        running=tuple(_running(active) for active in load.running.values()),
        free_slots=load.free_slots,
        free_kv_tokens=load.free_kv_tokens,
        foreign_running=load.foreign,
        queue_seconds=load.queue_seconds(now),
    )


def _waiting(now: float, active: ActiveCall) -> WaitingCall:
    return WaitingCall(
        call=active.call,
        urgency=urgency(now, active.latest_start),
        key=active.key,
        waited_seconds=now - active.released,
        predicted_seconds=active.predicted_seconds,
        output_tokens=active.output_tokens,
    )


def _running(active: ActiveCall) -> RunningCall:
    return RunningCall(
        call=active.call,
        sent=active.sent or 0.0,
        attempt=active.attempt,
        predicted_finish=active.predicted_finish,
        output_tokens=active.output_tokens,
    )
