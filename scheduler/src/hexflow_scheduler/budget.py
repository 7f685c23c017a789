"""Budgets: how a query's time is split over its stages.

The paper's rule: the time left goes to the stages in proportion to their expected cost, and is split
again at every release from what is really left then.
"""


def stage_budget(time_left: float, cost: float, later_cost: float) -> float:
    """Return the seconds a stage may take that starts now.

    ``time_left`` is deadline minus now, and may be negative: then so is the budget, and its calls are
    urgent. ``cost`` is the stage's expected seconds, ``later_cost`` those of the stages that must follow.
    Where neither is known the stage gets everything. Source: HexGen-Flow (arXiv 2505.05286),
    ``t_slo = (deadline - now) * cost / (cost + later cost)``.
    """
    total = cost + later_cost
    return time_left * cost / total if total > 0 else time_left
