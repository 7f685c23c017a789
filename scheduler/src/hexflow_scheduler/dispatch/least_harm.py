"""Least harm: place each call where the queries affected by it suffer least, all together. The default.

Of each instance that could take the call: by how much would the sum over all queries of
``SLO * (predicted latency / SLO)^e`` rise? A query counts once, by its slowest call; a call is charged for
the stall that prefilling it causes to everybody there and for making their steps longer; what remains of
a query after its call is in its latency. The exponent is the one parameter: 1 minds the mean delay, 3 the
tail.

Source: ours; ``docs/explanation/scheduling.md`` derives it. Compare the externality in Clarke pricing.
"""

from collections.abc import Sequence
from math import inf
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch import Choice
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.harm import harm_to_others, latencies, rise
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.outlook import Board, Foreseen, Outlook, Weighed, foresee, latest
from hexflow_scheduler.parameter import Parameter, Parameters

EXPONENT = Parameter(
    name="exponent",
    default=3.0,
    low=1.0,
    high=8.0,
    meaning="How much a late query counts against an early one: 1 gives the best mean, 3 the best P95.",
)

ALIKE = 1e-9
"""Relative difference below which two harms count as equal: rounding may differ with the unit of time."""

Verdict = tuple[Weighed, tuple[tuple[str, float], ...]]
"""The candidate that was chosen, and the scores of those that were looked at, the largest the best."""


class LeastHarm:
    """Place each call where the sum of (predicted latency / SLO)^e over all queries rises least."""

    name: ClassVar[str] = "LeastHarm"
    queue: ClassVar[str] = "Deadline"
    parameters: ClassVar[tuple[Parameter, ...]] = (EXPONENT,)

    def __init__(self) -> None:
        self.board = Board()

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Place the longest first, then look at each a second time with the others in place."""
        exponent = values["exponent"]
        self.board.now = now
        for active in siblings:
            fleet.slo_seconds(active)
        calls = [foresee(active) for active in siblings]
        calls.sort(key=lambda call: -call.output)
        verdicts = {call: self._put(now, call, fleet, exponent) for call in calls}
        if len(calls) > 1:
            for call in calls:
                fleet.take(call.active)
                verdicts[call] = self._put(now, call, fleet, exponent)
        return [
            Choice(call.active, chosen.outlook.load, scores) for call, (chosen, scores) in verdicts.items()
        ]

    def _put(self, now: float, call: Foreseen, fleet: Fleet, exponent: float) -> Verdict:
        weighed = [self._outlook(load).weigh(call, now) for load in fleet.candidates(call.active)]
        chosen, scores = self.least(now, call, weighed, exponent)
        call.settle(chosen)
        self.board.calls[call.active] = call
        fleet.put(call.active, chosen.outlook.load)
        return chosen, scores

    def least(self, now: float, call: Foreseen, candidates: Sequence[Weighed], exponent: float) -> Verdict:
        """Return the candidate that does the least harm, and the scores of those that were looked at.

        The harm to its own query alone is a lower bound. Candidates are looked at in the order of that
        bound, until it alone is more than the least harm found.
        """
        self.board.refresh(call.query)
        bounds = self._harm_to_own(now, call, candidates, exponent)
        ranked = sorted(range(len(candidates)), key=bounds.__getitem__)
        best, least, limit = ranked[0], inf, inf
        scores = []
        for place in ranked:
            own, candidate = bounds[place], candidates[place]
            if own > limit:
                break
            harm = own + self._harm_to_others(now, call, candidate, exponent, limit - own)
            scores.append((candidate.outlook.load.instance_id, -harm / call.slo))
            if harm > limit:
                continue
            alike = harm >= least - ALIKE * least
            if not alike or _longer_idle(candidate, candidates[best]):
                best = place
            least = min(harm, least)
            limit = least + ALIKE * least
        return candidates[best], tuple(scores)

    def _harm_to_own(
        self, now: float, call: Foreseen, candidates: Sequence[Weighed], exponent: float
    ) -> list[float]:
        since, slo = call.query.arrival, call.slo
        rest = call.rest - since
        siblings = self.board.of(call.query)
        elsewhere = latest(siblings)
        before = max(now + rest, elsewhere)
        harms = [rise(before, max(each.finish + rest, elsewhere), slo, exponent) for each in candidates]
        if siblings:
            near = {each.outlook for each in siblings}
            for place, each in enumerate(candidates):
                if each.outlook in near:
                    here, there = self._own_latencies(now, siblings, each, call.output)
                    harms[place] = rise(max(here, now + rest), max(there, each.finish + rest), slo, exponent)
        return harms

    def _own_latencies(
        self, now: float, siblings: Sequence[Foreseen], candidate: Weighed, output: float
    ) -> tuple[float, float]:
        outlook = candidate.outlook
        elsewhere = latest(each for each in siblings if each.outlook is not outlook)
        rows = [each.row(elsewhere) for each in siblings if each.outlook is outlook]
        return latencies(
            rows,
            start=candidate.start,
            step=outlook.step,
            clock=outlook.clock(now),
            stall=candidate.prefill,
            margin=candidate.margin,
            output=output,
        )

    def _harm_to_others(
        self, now: float, call: Foreseen, candidate: Weighed, exponent: float, limit: float
    ) -> float:
        outlook, query = candidate.outlook, call.query
        start, step, clock = candidate.start, outlook.step, outlook.clock(now)
        stall, margin, output = candidate.prefill, candidate.margin, call.output
        total = harm_to_others(
            outlook.rows.values(),
            but=query,
            start=start,
            step=step,
            clock=clock,
            stall=stall,
            margin=margin,
            output=output,
            exponent=exponent,
            limit=limit,
        )
        for other, rows in outlook.groups.items():
            if total > limit:
                break
            if other is not query:
                before, after = latencies(
                    rows, start=start, step=step, clock=clock, stall=stall, margin=margin, output=output
                )
                total += rise(before, after, rows[0][-1], exponent)
        return total

    def _outlook(self, load: InstanceLoad) -> Outlook:
        outlook = load.follower
        if not isinstance(outlook, Outlook):
            load.follower = outlook = Outlook(load, self.board)
        return outlook


def _longer_idle(one: Weighed, other: Weighed) -> bool:
    return one.outlook.load.last_put < other.outlook.load.last_put
