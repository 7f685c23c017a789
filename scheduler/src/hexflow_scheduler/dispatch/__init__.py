"""Dispatch rules: which instance a call goes to. One module each; ``policy.py`` lists them.

A rule sees all calls that were released together and the fleet. It has no clock and no randomness; what
it remembers lives in the fleet or in its own object, and replaying the event log rebuilds it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters


@dataclass(frozen=True, slots=True)
class Choice:
    """Say where a call goes, and how every instance that could serve it scored (the largest wins)."""

    active: ActiveCall
    load: InstanceLoad
    scores: tuple[tuple[str, float], ...] = ()


class DispatchRule(Protocol):
    """Choose instances."""

    name: ClassVar[str]
    """Name in resources, flags and event logs."""
    queue: ClassVar[str]
    """Name of the queue rule that goes with it where none is named."""
    parameters: ClassVar[tuple[Parameter, ...]]
    """Its parameters with their defaults and bounds."""

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Return one choice for each of the calls, which were released together.

        Every call has a candidate (``fleet.candidates``). While it thinks the rule may put calls on
        instances and take them off; of each call, its choice counts. ``values`` holds every parameter of
        the rule.
        """
        ...


Score = Callable[[ActiveCall, Sequence[InstanceLoad]], Sequence[float]]
"""Scores of the candidates for a call, in their order."""


def one_by_one(siblings: Sequence[ActiveCall], fleet: Fleet, score: Score) -> list[Choice]:
    """Place calls in turn on the candidate of the largest score, each seeing those before it.

    Between equal scores the instance wins that has gone longest without a call.
    """
    choices = []
    for active in siblings:
        candidates = fleet.candidates(active)
        scores = score(active, candidates)
        # Rounding lets equals be equal: a score may differ in its last bit with the unit of time.
        best = max(
            range(len(candidates)),
            key=lambda i: (round(scores[i], 9), -candidates[i].last_put, -i),
        )
        fleet.put(active, candidates[best])
        ranked = tuple((load.instance_id, value) for load, value in zip(candidates, scores, strict=True))
        choices.append(Choice(active, candidates[best], ranked))
    return choices
