"""Learning from what has ended: a call's lengths and its instance's speed, and how long a query went on."""

from hexflow_scheduler.active import ActiveCall, OpenQuery
from hexflow_scheduler.call import Usage
from hexflow_scheduler.estimate import Estimates
from hexflow_scheduler.load import InstanceLoad

RATIO_BOUNDS = (0.4, 2.5)
"""What one call may say about a speed at most, so that one stalled stream does not undo a hundred calls."""


def learn(estimates: Estimates, now: float, *, active: ActiveCall, load: InstanceLoad, usage: Usage) -> None:
    """Learn from a call that has just been answered and still counts as running.

    Its seconds are compared with what the profile and the present factors say: the prompts that were
    prefilled while it was there, its own among them, and a step for each token it really had, in the mean batch
    and context it ran in. The whole moves both factors, also where the time of the first token is known: how long
    that took is mostly how many steps of others, and prompts of siblings thought cached, went before it.
    """
    estimates.finished(active.call, usage)
    if active.sent is not None and now > active.sent:
        _learn_speed(estimates, now, now - active.sent, active=active, load=load, usage=usage)


def _learn_speed(
    estimates: Estimates, now: float, elapsed: float, *, active: ActiveCall, load: InstanceLoad, usage: Usage
) -> None:
    speed = load.speed
    sequences, context, prefilled = (
        after - before for after, before in zip(load.reading(now), active.reading, strict=True)
    )
    cached = active.cached_tokens if usage.cached_tokens is None else usage.cached_tokens
    own = speed.prefill_seconds(usage.prompt_tokens, cached_tokens=cached) / speed.prefill
    # What was expected of its own prefill is among all that was prefilled; what it really had takes its place.
    others = max(0.0, prefilled - active.prefill_work)
    load.correct_prefill(own - active.prefill_work)
    step = speed.step_seconds(sequences / elapsed, context / elapsed)
    decode = step * usage.output_tokens / active.call.samples
    ratio = _ratio(elapsed, speed.prefill * (own + others) + decode)
    estimates.timed(load.instance_id, prefill=ratio, decode=ratio)


def learn_query(estimates: Estimates, now: float, query: OpenQuery) -> None:
    """Learn from an answered query how long it took, and went on after the last call of each class."""
    estimates.answered(query.workflow, now - query.arrival)
    for kind, at in query.ends.items():
        estimates.rested(kind, now - at)


def _ratio(observed: float, predicted: float) -> float | None:
    if observed <= 0 or predicted <= 0:
        return None
    low, high = RATIO_BOUNDS
    return min(high, max(low, observed / predicted))
