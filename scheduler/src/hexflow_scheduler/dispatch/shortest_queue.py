"""Shortest queue in seconds: the instance with the least work left, by the profiles and predicted lengths.

Source: join the shortest queue by workload (Winston, "Optimality of the shortest line discipline", J. Appl.
Prob. 14, 1977, for the count; "least work left" in Harchol-Balter, "Performance Modeling and Design of
Computer Systems", 2013, chapter 24). The work left is the seconds of all that waits and of what is left
of what runs; how fast the instance is for this call does not matter to it.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one, reference_seconds
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters


class ShortestQueue:
    """Place each call where the fewest seconds of work are left."""

    name: ClassVar[str] = "ShortestQueue"
    queue: ClassVar[str] = "FCFS"
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Score by the seconds left, negated, over those of the call."""

        def score(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float]:
            reference = reference_seconds(active, candidates)
            return [-load.queue_seconds(now) / reference for load in candidates]

        return one_by_one(siblings, fleet, score)
