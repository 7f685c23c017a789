"""Sticky until saturated: stay where the prompt is cached until it costs too much time to the first token.

Models llm-d's optimised baseline (llm-d.ai/blog/sticky-until-saturated-token-aware-routing): the filter
``pkg/epp/framework/plugins/scheduling/filter/prefixcacheaffinity/plugin.go`` of llm-d/llm-d-router, then one
load scorer. Instances that have most of the prompt cached are sticky; while the best of them is expected to
give the first token no later than the best other one by more than a limit, only they are looked at, else
all. Of these the call goes to the one with the fewest uncached prompt tokens in flight, its own included
(``token-load-scorer``), or with the fewest calls (``active-request-scorer``, which llm-d advises where
decoding is what takes time).

Where it differs: llm-d estimates the time to the first token from tokens in flight and one measured
throughput, or by a trained model; here it is the kernel's prediction for the instance: wait for a slot,
prefill that is ahead, own prefill. Its limit is in milliseconds; here it is a share of the call's own
seconds, so that it fits any model. Its exploration (off by default) is left out.
"""

from collections.abc import Sequence
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice, one_by_one, reference_seconds
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.parameter import Parameter, Parameters

AFFINITY = Parameter(
    name="affinity",
    default=0.8,
    low=0.0,
    high=1.0,
    meaning="Share of the prompt that a sticky instance has cached at least.",
)
GAP = Parameter(
    name="gap",
    default=0.3,
    low=0.0,
    high=1000.0,
    meaning="How much later the first token may come from a sticky instance, over the mean seconds of the call.",
)
BY_CALLS = Parameter(
    name="by_calls",
    default=0.0,
    low=0.0,
    high=1.0,
    meaning="0 takes the instance with the fewest uncached tokens in flight, 1 the one with the fewest calls.",
)


class StickyUntilSaturated:
    """Place each call on a warm instance, until those are too busy."""

    name: ClassVar[str] = "StickyUntilSaturated"
    queue: ClassVar[str] = "FCFS"
    parameters: ClassVar[tuple[Parameter, ...]] = (AFFINITY, GAP, BY_CALLS)

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Score the sticky ones, or all, by their load, negated."""

        def score(active: ActiveCall, candidates: Sequence[InstanceLoad]) -> Sequence[float | None]:
            uncached = [active.call.prompt_tokens - load.cached_tokens(active) for load in candidates]
            most = (1 - values["affinity"]) * active.call.prompt_tokens
            sticky = [tokens <= round(most, 6) for tokens in uncached]
            if any(sticky) and not all(sticky):
                first = [first_token_seconds(now, active, load) for load in candidates]
                warm = min(seconds for seconds, is_sticky in zip(first, sticky, strict=True) if is_sticky)
                cold = min(seconds for seconds, is_sticky in zip(first, sticky, strict=True) if not is_sticky)
                # Rounding lets equals be equal, whatever the unit of time.
                late = round((warm - cold) / reference_seconds(active, candidates), 9)
                everywhere = late > values["gap"]
            else:
                everywhere = True
            loads = [
                load.outstanding if values["by_calls"] >= 0.5 else load.uncached_tokens + own
                for load, own in zip(candidates, uncached, strict=True)
            ]
            return [
                -float(busy) if everywhere or is_sticky else None
                for busy, is_sticky in zip(loads, sticky, strict=True)
            ]

        return one_by_one(siblings, fleet, score)


def first_token_seconds(now: float, active: ActiveCall, load: InstanceLoad) -> float:
    """Return the seconds until a call that comes now is expected to have its first token."""
    return load.start_seconds(now, active) + load.prefill_backlog(now) + load.prefill_seconds(active)
