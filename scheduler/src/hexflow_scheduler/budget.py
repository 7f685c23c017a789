"""Budgets: how a query's time is split over its stages.

The paper's rule: the time left goes to the stages in proportion to their expected cost, and is split
again at every release from what is really left then.
"""

from collections.abc import Iterable


def stage_budget(time_left: float, cost: float, later_cost: float) -> float:
    """Return the seconds a stage may take that starts now.

    ``time_left`` is deadline minus now, and may be negative: then so is the budget, and its calls are
    urgent. ``cost`` is the stage's expected seconds, ``later_cost`` those of the stages that must follow.
    Where neither is known the stage gets everything. Source: HexGen-Flow (arXiv 2505.05286),
    ``t_slo = (deadline - now) * cost / (cost + later cost)``.
    """
    total = cost + later_cost
    return time_left * cost / total if total > 0 else time_left


def split(time_left: float, costs: Iterable[float]) -> tuple[float, ...]:
    """Return what each stage of a sequence gets of ``time_left`` if every stage takes just its budget.

    Costs that are all zero are taken as equal.
    """
    known = tuple(costs)
    total = sum(known)
    if total <= 0:
        return tuple(time_left / len(known) for _ in known)
    return tuple(time_left * cost / total for cost in known)
