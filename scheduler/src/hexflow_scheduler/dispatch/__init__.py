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


Score = Callable[[ActiveCall, Sequence[InstanceLoad]], Sequence[float | None]]
"""Scores of the candidates for a call, in their order; None for one that the rule leaves out."""


def one_by_one(siblings: Sequence[ActiveCall], fleet: Fleet, score: Score) -> list[Choice]:
    """Place calls in turn on the candidate of the largest score, each seeing those before it.

    Between equal scores the instance wins that has gone longest without a call. At least one candidate
    has a score.
    """
    choices = []
    for active in siblings:
        candidates = fleet.candidates(active)
        scores = score(active, candidates)
        best: InstanceLoad | None = None
        most = 0.0
        scored = []
        for load, value in zip(candidates, scores, strict=True):
            if value is None:
                continue
            scored.append((load.instance_id, value))
            # Rounding lets equals be equal: a score may differ in its last bit with the unit of time.
            value = round(value, 9)
            if best is None or value > most or (value == most and load.last_put < best.last_put):
                best, most = load, value
        assert best is not None, "a rule leaves out all candidates"  # noqa: S101
        fleet.put(active, best)
        choices.append(Choice(active, best, tuple(scored)))
    return choices


def reference_seconds(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> float:
    """Return the mean seconds of a call over its candidates, at least a step: what times are measured by."""
    seconds = sum(max(load.call_seconds(active), load.speed.quantum) for load in candidates)
    return seconds / len(candidates)
