"""Power of two choices: of two instances drawn at random, the one with fewer calls.

Models Ray Serve's default router: ``PowerOfTwoChoicesRequestRouter`` in
``python/ray/serve/_private/request_router/pow_2_router.py``. Source of the idea: Mitzenmacher, "The Power of
Two Choices in Randomized Load Balancing" (IEEE TPDS 12(10), 2001). It needs the counts of two instances
only; their speeds and the lengths of calls do not matter to it.

Where it differs: Ray asks replicas that accept no more for another draw; here a call that finds no slot
waits in its instance's queue. Draws come from a seed and the number of calls drawn for, so that a replay
draws the same.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one
from hexflow_scheduler.draw import draw_two
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters

SEED = Parameter(
    name="seed",
    default=0.0,
    low=0.0,
    high=1e9,
    meaning="Whole number that begins the draws; another one gives another sequence.",
)


class PowerOfTwo:
    """Place each call on the less busy of two candidates."""

    name: ClassVar[str] = "PowerOfTwo"
    queue: ClassVar[str] = "FCFS"
    parameters: ClassVar[tuple[Parameter, ...]] = (SEED,)

    def __init__(self) -> None:
        self._pairs = Pairs()

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Score the two that are drawn by their counts, negated, and no other."""

        def score(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float | None]:
            return self._pairs.fewest(candidates, seed=int(values["seed"]))

        return one_by_one(siblings, fleet, score)


class Pairs:
    """Draw pairs of candidates, one after the other."""

    def __init__(self) -> None:
        self._drawn = 0

    def fewest(self, candidates: Sequence[InstanceLoad], *, seed: int) -> list[float | None]:
        """Return the counts of the two candidates of the next pair, negated, and None for the rest."""
        self._drawn += 1
        if len(candidates) <= 2:
            return [-float(load.outstanding) for load in candidates]
        pair = draw_two(seed, self._drawn, len(candidates))
        return [-float(load.outstanding) if i in pair else None for i, load in enumerate(candidates)]
