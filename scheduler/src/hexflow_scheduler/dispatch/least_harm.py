"""Least harm: place each call where the queries affected by it suffer least, all together. The default.

Of each instance that could take the call: by how much would the sum over all queries of
``SLO * (predicted latency / SLO)^e`` rise? A query counts once, by its slowest call; a call is charged for
the stall that prefilling it causes to everybody there and for making their steps longer; what remains of
a query after its call is in its latency. The exponent is the one parameter that matters: 1 minds the mean
delay, 3 the tail. Where tenants share a fleet, fairness makes those give way that have more queries under
way than the others: the SLO of a query that comes while its tenant is ahead counts as longer.

Source: ours; ``docs/explanation/scheduling.md`` derives it. Compare the externality in Clarke pricing.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from math import inf
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.call import Call
from hexflow_scheduler.dispatch import Choice
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.harm import Row, harm_to_others, latencies, rise
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.outlook import Board, Foreseen, Outlook, Weighed, latest
from hexflow_scheduler.parameter import Parameter, Parameters

EXPONENT = Parameter(
    name="exponent",
    default=3.0,
    low=1.0,
    high=8.0,
    meaning="How much a late query counts against an early one: 1 gives the best mean, 3 the best P95.",
)

FAIRNESS = Parameter(
    name="fairness",
    default=0.0,
    low=0.0,
    high=2.0,
    meaning="How far a tenant with more queries under way than others gives way to them: 0 not at all, 1 in proportion.",
)

MOST_AHEAD = 10.0
"""How many times the others' queries under way a tenant is thought to have at most."""
ALIKE = 1e-9
"""Relative difference below which two harms count as equal: rounding may differ with the unit of time."""

MANY = 32
"""Candidates from which not all are weighed."""
Verdict = tuple[Weighed, tuple[tuple[str, float], ...]]
"""The candidate that was chosen, and the scores of those that were looked at, the largest the best."""


class LeastHarm:
    """Place each call where the sum of (predicted latency / SLO)^e over all queries rises least."""

    name: ClassVar[str] = "LeastHarm"
    queue: ClassVar[str] = "Deadline"
    parameters: ClassVar[tuple[Parameter, ...]] = (EXPONENT, FAIRNESS)

    def __init__(self) -> None:
        self.board = Board()
        self._loads: Sequence[InstanceLoad] = ()
        self._outlooks: list[Outlook] = []
        """Those of the candidates of the last call, which are as a rule the next one's too."""

    def place(
        self, now: float, siblings: Sequence[ActiveCall], fleet: Fleet, values: Parameters, /
    ) -> Sequence[Choice]:
        """Place the longest first, then look at each a second time with the others in place."""
        exponent = values["exponent"]
        self.board.now = now = self.board.instant(now)
        for active in siblings:
            self._settle_slo(active, fleet, values["fairness"])
        calls = [self.board.foresee(active) for active in siblings]
        calls.sort(key=lambda call: -call.output)
        verdicts = {call: self._put(now, call, fleet, exponent) for call in calls}
        if len(calls) > 1:
            for call in calls:
                fleet.take(call.active)
                verdicts[call] = self._put(now, call, fleet, exponent)
        return [
            Choice(call.active, chosen.outlook.load, scores) for call, (chosen, scores) in verdicts.items()
        ]

    def _settle_slo(self, active: ActiveCall, fleet: Fleet, fairness: float) -> None:
        query = active.query
        if not query.slo_seconds:
            slo = fleet.slo_seconds(active)
            if fairness:
                query.slo_seconds = slo * min(MOST_AHEAD, self.board.ahead(active.call)) ** fairness

    def _put(self, now: float, call: Foreseen, fleet: Fleet, exponent: float) -> Verdict:
        loads = fleet.candidates(call.active)
        if loads is not self._loads:
            self._loads, self._outlooks = loads, [self.attend(load) for load in loads]
        chosen, scores = self.least(now, call, self._outlooks, exponent)
        call.settle(chosen)
        self.board.calls[call.active] = call
        fleet.put(call.active, chosen.outlook.load)
        return chosen, scores

    def least(self, now: float, call: Foreseen, outlooks: Sequence[Outlook], exponent: float) -> Verdict:
        """Return the candidate that does the least harm, and the scores of those that were looked at.

        A score is the harm over the SLO, negated; or a bound that it does not pass, once that is too low to win.
        The choice is that of looking at all. But candidates are looked at in the order of a lower bound on
        their harm, until the bound alone is more than the least harm found. Of many, those are left out
        first that could not win with all of the prompt cached that can be.
        """
        self.board.refresh(call.query)
        search = Search(now, call, self.board.of(call.query), exponent)
        if len(outlooks) > MANY:
            search.look_at_few(outlooks)
        else:
            search.look(outlooks)
        return search.verdict()

    def attend(self, load: InstanceLoad) -> Outlook:
        """Keep books of an instance from now on; return them."""
        outlook = load.follower
        if not isinstance(outlook, Outlook):
            load.follower = outlook = Outlook(load, self.board)
        return outlook


class Search:
    """Look for the best candidate for one call."""

    __slots__ = (
        "_before",
        "_best",
        "_call",
        "_elsewhere",
        "_exponent",
        "_least",
        "_near",
        "_now",
        "_scores",
        "_siblings",
        "limit",
    )

    def __init__(self, now: float, call: Foreseen, siblings: Sequence[Foreseen], exponent: float) -> None:
        self._now = now
        self._call = call
        self._siblings = siblings
        self._exponent = exponent
        self._near = {each.outlook for each in siblings}
        self._elsewhere = latest(siblings)
        self._before = max(now + call.rest - call.arrival, self._elsewhere)
        self._best: Weighed | None = None
        self._least = inf
        self.limit = inf
        """The harm from which a candidate is surely worse than the best so far."""
        self._scores: list[tuple[str, float]] = []

    def verdict(self) -> Verdict:
        """Return the best candidate and the scores."""
        assert self._best is not None  # noqa: S101 - there are candidates
        return self._best, tuple(self._scores)

    def bounds(self, outlooks: Sequence[Outlook], cached: float | None = None) -> list[float]:
        """Return lower bounds on the harm on instances that have what they have of the prompt, or ``cached`` tokens."""
        call, now, before, near, exponent = self._call, self._now, self._before, self._near, self._exponent
        bounds = []
        for outlook in outlooks:
            hit = outlook.load.cached_tokens(call.active) if cached is None else cached
            alone = not near or outlook not in near
            bounds.append(outlook.bound(call, now, hit, before=before, alone=alone, exponent=exponent))
        return bounds

    def look(self, outlooks: Sequence[Outlook]) -> None:
        """Look at candidates in the order of their bounds, as long as they may win."""
        bounds = self.bounds(outlooks)
        for place in sorted(range(len(bounds)), key=bounds.__getitem__):
            if bounds[place] > self.limit:
                self._scores.append((outlooks[place].load.instance_id, -bounds[place] / self._call.slo))
                continue
            self._weigh(outlooks[place])

    def look_at_few(self, outlooks: Sequence[Outlook]) -> None:
        """Look at many candidates, the most promising first: bounded roughly, then closely, then weighed."""
        rough = self.bounds(outlooks, most_cached(self._call.active.call))
        promising = [(bound, place, False) for place, bound in enumerate(rough)]
        heapify(promising)
        while promising:
            bound, place, closely = heappop(promising)
            if bound > self.limit:
                return
            if closely:
                self._weigh(outlooks[place])
            else:
                heappush(promising, (self.bounds((outlooks[place],))[0], place, True))

    def _weigh(self, outlook: Outlook) -> None:
        candidate = outlook.weigh(self._call, self._now)
        own = self._harm_to_own(candidate)
        self._take(candidate, own + self._harm_to_others(candidate, self.limit - own))

    def _take(self, candidate: Weighed, harm: float) -> None:
        # Of candidates alike the one wins that has gone longest without a call.
        self._scores.append((candidate.outlook.load.instance_id, -harm / self._call.slo))
        if harm > self.limit:
            return
        best = self._best
        alike = best is not None and harm >= self._least * (1 - ALIKE)
        if best is None or not alike or candidate.outlook.load.last_put < best.outlook.load.last_put:
            self._best = candidate
        if harm < self._least:
            self._least = harm
            self.limit = harm * (1 + ALIKE)

    def _harm_to_own(self, candidate: Weighed) -> float:
        call, before, elsewhere = self._call, self._before, self._elsewhere
        after = candidate.finish + call.rest - call.arrival
        if candidate.outlook in self._near:
            here = [each for each in self._siblings if each.outlook is candidate.outlook]
            elsewhere = latest(each for each in self._siblings if each.outlook is not candidate.outlook)
            rows = [each.row(elsewhere) for each in here]
            without, elsewhere = self._latencies(rows, candidate)
            before = max(without, self._now + call.rest - call.arrival)
        return rise(before, max(after, elsewhere), call.slo, self._exponent)

    def _harm_to_others(self, candidate: Weighed, limit: float) -> float:
        outlook, exponent = candidate.outlook, self._exponent
        total = harm_to_others(
            outlook.rows.values(),
            start=candidate.start,
            step=candidate.step,
            clock=candidate.clock,
            stall=candidate.stall,
            margin=candidate.margin,
            output=self._call.output,
            exponent=exponent,
            limit=limit,
        )
        for rows in outlook.groups.values():
            if total > limit:
                break
            before, after = self._latencies(rows, candidate)
            total += rise(before, after, rows[0][-1], exponent)
        return total

    def _latencies(self, rows: Iterable[Row], candidate: Weighed) -> tuple[float, float]:
        return latencies(
            rows,
            start=candidate.start,
            step=candidate.step,
            clock=candidate.clock,
            stall=candidate.stall,
            margin=candidate.margin,
            output=self._call.output,
        )


def most_cached(call: Call) -> float:
    """Return how many tokens of a prompt an instance can have in its prefix cache."""
    return max(0, min(sum(block.tokens for block in call.prefix), call.prompt_tokens - 1))
