"""Earliest finish: the instance on which the call is expected to be done first.

Source: minimum completion time (MCT) of Maheswaran et al., "Dynamic mapping of a class of independent tasks
onto heterogeneous computing systems" (J. Parallel Distrib. Comput. 59, 1999); the selfish rule to which
schedulers with a latency predictor come down. It counts the wait for a slot and for KV, the prefill that
is ahead, what of the prompt is cached and the batch, but not what the call does to others.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one, reference_seconds
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters


class EarliestFinish:
    """Place each call where it ends first."""

    name: ClassVar[str] = "EarliestFinish"
    queue: ClassVar[str] = "FCFS"
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Score by the seconds until the end, negated, over the mean of the call's seconds."""

        def score(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float]:
            reference = reference_seconds(active, candidates)
            return [-load.finish_seconds(now, active) / reference for load in candidates]

        return one_by_one(siblings, fleet, score)
