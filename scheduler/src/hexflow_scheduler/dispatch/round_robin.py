"""Round robin: the instances in turn, whatever they are and whatever they do.

Models vLLM servers behind a Kubernetes Service: kube-proxy's ``rr`` under IPVS, and what its random choice
under iptables comes to on average.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters


class RoundRobin:
    """Place each call on the candidate that has gone longest without one."""

    name: ClassVar[str] = "RoundRobin"
    queue: ClassVar[str] = "FCFS"
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Score all alike, so that the tie is broken by turn."""
        return one_by_one(siblings, fleet, _all_alike)


def _all_alike(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float]:
    return [0.0] * len(candidates)
