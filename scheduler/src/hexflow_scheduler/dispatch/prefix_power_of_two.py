"""Power of two choices with prefix affinity: where the longest part of the prompt is cached, while load is even.

Models Ray Serve LLM: ``PrefixCacheAffinityRouter`` in
``python/ray/llm/_internal/serve/routing_policies/prefix_aware/prefix_aware_router.py``. While the counts of
the busiest and the idlest replica differ by no more than a threshold, a call goes to the replicas that
match the longest part of its prompt, if that is a certain share of it, else to those whose tree of prompts
is smallest; of these the least busy one. When they differ by more it is power of two choices.

Where it differs: Ray matches characters of the whole prompt against a tree it never prunes by default; here
the kernel's mirror of the prefix cache says how many tokens match, and how much an instance remembers.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one
from hexflow_scheduler.dispatch.power_of_two import SEED, Pairs
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters

IMBALANCE = Parameter(
    name="imbalance",
    default=10.0,
    low=0.0,
    high=10_000.0,
    meaning="Calls by which the busiest candidate may be ahead of the idlest one for prompts to be matched.",
)
MATCH = Parameter(
    name="match",
    default=0.1,
    low=0.0,
    high=1.0,
    meaning="Share of the prompt that must be cached somewhere for the call to go there.",
)


class PrefixPowerOfTwo:
    """Place each call where its prompt is cached, unless load is uneven."""

    name: ClassVar[str] = "PrefixPowerOfTwo"
    queue: ClassVar[str] = "FCFS"
    parameters: ClassVar[tuple[Parameter, ...]] = (IMBALANCE, MATCH, SEED)

    def __init__(self) -> None:
        self._pairs = Pairs()

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Score those that are looked at by their counts, negated, and no other."""

        def score(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float | None]:
            pair = self._pairs.fewest(candidates, seed=int(values["seed"]))
            counts = [load.outstanding for load in candidates]
            if max(counts) - min(counts) > values["imbalance"]:
                return pair
            cached = [load.cached_tokens(active) for load in candidates]
            longest = max(cached)
            if longest and longest >= values["match"] * active.call.prompt_tokens:
                near = [tokens == longest for tokens in cached]
            else:
                trees = [load.remembered_tokens for load in candidates]
                near = [tokens == min(trees) for tokens in trees]
            return [-float(count) if is_near else None for count, is_near in zip(counts, near, strict=True)]

        return one_by_one(siblings, fleet, score)
