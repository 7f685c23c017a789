"""Most relaxed: the type of GPU with the most slack for the call, while it has room for one call more.

Models AIBrix's ``slo-least-load-pulling``, the default of its SLO routers: ``SLOQueue.Peek`` in
``pkg/plugins/gateway/queue/slo_queue.go`` and ``leastLoadRouter`` in
``pkg/plugins/gateway/algorithms/least_load.go`` of vllm-project/aibrix. Each type of GPU is ranked by
elapsed + expected - target, the least ("most relaxing") first. Types are tried in that order, all but the
first only while they keep the target, and of a type's pods the call goes to the one of the least
utilisation that it does not take beyond its cap. Utilisation counts pending calls over those that the
profile says the GPU serves in time.

Where it differs: AIBrix holds a call for which no pod has room in a queue before all pods, ordered by rank,
and pulls it when one has. Here every call has an instance, so it goes to the pod of the least utilisation
among those types, waits there for a slot, and that queue is ordered by urgency, which is the rank. Its
profiles are measured under load, by input and output length; here they are the kernel's predictions for the
call alone, and how many calls keep the target follows from the profile.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters

SHARE = Parameter(
    name="share",
    default=0.7,
    low=0.01,
    high=10.0,
    meaning="Share of its time within which a call is expected to end: AIBrix's target.",
)


class MostRelaxed:
    """Place each call on the GPU type of the most slack that has room within its target."""

    name: ClassVar[str] = "MostRelaxed"
    queue: ClassVar[str] = "Urgency"
    parameters: ClassVar[tuple[Parameter, ...]] = (SHARE,)

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Score the instances of the type that is chosen by their utilisation, negated."""

        def score(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float | None]:
            target = values["share"] * (active.released + fleet.time_allowed(active) - now)
            types: dict[str, list[InstanceLoad]] = {}
            for load in candidates:
                types.setdefault(load.instance.gpu_type, []).append(load)
            expected = {
                gpu: min(load.alone_seconds(active) for load in loads) for gpu, loads in types.items()
            }
            # Rounding lets equals be equal, whatever the unit of time.
            unit = max(sum(expected.values()), min(load.speed.quantum for load in candidates))
            ranked = sorted(types, key=lambda gpu: round(expected[gpu] / unit, 9))
            in_time = [
                gpu
                for i, gpu in enumerate(ranked)
                if i == 0 or round((expected[gpu] - target) / unit, 9) <= 0
            ]
            used = {
                load.instance_id: round(utilisation(load, active, target), 9)
                for gpu in in_time
                for load in types[gpu]
            }
            with_room = (gpu for gpu in in_time if any(used[load.instance_id] <= 1 for load in types[gpu]))
            gpu = next(with_room, None)
            chosen = in_time if gpu is None else [gpu]
            return [
                -used[load.instance_id] if load.instance.gpu_type in chosen else None for load in candidates
            ]

        return one_by_one(siblings, fleet, score)


def utilisation(load: InstanceLoad, active: ActiveCall, target: float) -> float:
    """Return the calls on an instance, with this one, over those like it that it serves within ``target`` seconds."""
    call, profile = active.call, load.instance.profile
    one = load.speed.call_seconds(call.prompt_tokens, active.output_tokens, batch=1)
    two = load.speed.call_seconds(call.prompt_tokens, active.output_tokens, batch=2)
    most = float(profile.slots)
    if two > one:
        most = min(most, max(1.0, 1.0 + (target - one) / (two - one)))
    return (load.outstanding + call.samples) / most
