"""Just enough: the slowest instance that still answers in time, so that fast ones stay free.

Source: Du et al., "GoodServe: Towards High-Goodput Serving of Agentic LLM Inferences over Heterogeneous
Resources" (arXiv 2605.16867), the just-enough instance selection. Of the instances on which the call is
expected to end within its time, the one on which it ends last; where there is none, the one on which it
ends first.

Where it differs: its rectifying migrations are left out, since a call that the kernel sent stays where it
is. Lengths and speeds are the kernel's predictions, prefix caches included, which is more than GoodServe
has. The time of a call is its budget, or what is left until its query's deadline.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one, reference_seconds
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters

SHARE = Parameter(
    name="share",
    default=0.7,
    low=0.0,
    high=10.0,
    meaning="Share of its time within which a call is expected to end; 0 takes the instance of the earliest end.",
)


class JustEnough:
    """Place each call where it ends as late as it may."""

    name: ClassVar[str] = "JustEnough"
    queue: ClassVar[str] = "FCFS"
    parameters: ClassVar[tuple[Parameter, ...]] = (SHARE,)

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Score by the seconds until the end over those of the call: the latest in time, or else the earliest."""

        def score(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float | None]:
            reference = reference_seconds(active, candidates)
            left = active.released + fleet.time_allowed(active) - now
            limit = round(values["share"] * left / reference, 9)
            ends = [round(load.finish_seconds(now, active) / reference, 9) for load in candidates]
            if any(end <= limit for end in ends):
                return [end if end <= limit else None for end in ends]
            return [-end for end in ends]

        return one_by_one(siblings, fleet, score)
