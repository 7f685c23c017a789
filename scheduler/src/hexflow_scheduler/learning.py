"""Learning from what has ended: a call's lengths and its instance's speed, and how long a query went on."""

from hexflow_scheduler.active import ActiveCall, OpenQuery
from hexflow_scheduler.call import Usage
from hexflow_scheduler.estimate import Estimates
from hexflow_scheduler.load import InstanceLoad

RATIO_BOUNDS = (0.25, 4.0)
"""What one call may say about a speed at most, so that one stalled stream does not undo a hundred calls."""


def learn(estimates: Estimates, now: float, *, active: ActiveCall, load: InstanceLoad, usage: Usage) -> None:
    """Learn from a call that has just been answered and still counts as running.

    Its seconds are compared with what the profile and the present factors say for the tokens it really
    had, in the mean batch it ran in. Where the time of the first token is known, prefill and decode are
    told apart; else the whole moves both.
    """
    estimates.finished(active.call, usage)
    elapsed = 0.0 if active.sent is None else now - active.sent
    batch = load.mean_batch(now, active)
    samples = active.call.samples
    cached = active.cached_tokens if usage.cached_tokens is None else usage.cached_tokens
    prefill = load.speed.prefill_seconds(usage.prompt_tokens, cached_tokens=cached)
    decode = load.speed.decode_seconds(usage.prompt_tokens, usage.output_tokens / samples, batch=batch)
    if usage.first_token_seconds is None:
        both = _ratio(elapsed, prefill + decode)
        estimates.timed(load.instance_id, prefill=both, decode=both)
    else:
        # A prompt found in the cache takes a step or two, which says nothing about prefilling.
        worth = prefill > 4 * load.speed.quantum
        estimates.timed(
            load.instance_id,
            prefill=_ratio(usage.first_token_seconds, prefill) if worth else None,
            decode=_ratio(elapsed - usage.first_token_seconds, decode),
        )


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
