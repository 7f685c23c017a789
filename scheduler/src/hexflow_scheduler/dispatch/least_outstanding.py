"""Least outstanding: the instance with the fewest calls, whatever their length and its speed.

Models the usual load balancers in front of TGI and others: nginx ``least_conn``, least outstanding requests of
AWS's, AIBrix's ``least-request`` (``pkg/plugins/gateway/algorithms/least_request.go``). It counts what this
router sent and what the engine says it runs for others.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters


class LeastOutstanding:
    """Place each call where the fewest sequences run or wait."""

    name: ClassVar[str] = "LeastOutstanding"
    queue: ClassVar[str] = "FCFS"
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Score by the count, negated."""
        return one_by_one(siblings, fleet, _fewest)


def _fewest(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float]:
    return [-float(load.outstanding) for load in candidates]
