"""Tuning by replay: which value of a policy's parameter would have served a trace best.

A grid over the parameter, then finer around its best, on the trace as it was recorded; then the best within
bounds and step against the value in force, on traffic like that of the trace (``resample``), both on the
very same queries. Taken is what wins in nearly all of those and by enough. Pure: no clock, no file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from math import isnan
from statistics import fmean, median

from hexflow_scheduler import Estimates, Parameters, Policy
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.measure import spread
from hexflow_simulator.objective import Objective, gain
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.rehearsal import Attempt, Rehearsal
from hexflow_simulator.tuning import Advice, Knob, Limits, Point, SpeedFit, TraceFacts, TuningResult, Verdict

GRID_POINTS = 11
REFINEMENTS = 2
"""Times that the neighbourhood of the best is looked at with half the distance."""
REPLICAS = 8
"""Traces like the recorded one, on which a change must prove itself."""
LOSSES = 1
"""Of those, how many may say otherwise: 7 of 8 or more by chance alone happens in 1 of 28 cases."""
ADVICE_REPLICAS = 3
TUNED_PARAMETERS = {"HexGenFlow": "alpha", "HexGenFlowLiteral": "alpha", "LeastHarm": "exponent"}
"""The parameter of each dispatch rule that tuning looks at."""

Progress = Callable[[int, int], None]
"""Is told how many simulations are done, and how many are planned."""


def knob_of(
    policy: Policy, *, low: float | None = None, high: float | None = None, max_step: float | None = None
) -> Knob | None:
    """Return the parameter of a policy that is tuned, within its own bounds or closer ones; None if it has none."""
    name = TUNED_PARAMETERS.get(policy.dispatch)
    declared = next((each for each in policy.declared if each.name == name), None)
    if declared is None:
        return None
    return Knob(
        name=declared.name,
        low=declared.low if low is None else max(low, declared.low),
        high=declared.high if high is None else min(high, declared.high),
        max_step=max_step,
    )


def tune(
    queries: Sequence[SimulatedQuery],
    fleet: Sequence[SimulatedInstance],
    *,
    policy: Policy,
    knob: Knob | None,
    objective: Objective = Objective.P95,
    limits: Limits | None = None,
    workflow: str = "",
    others: Mapping[str, Parameters] | None = None,
    estimates: Estimates | None = None,
    age_seconds: float | None = None,
    advice: Sequence[str] = (),
    speeds: Sequence[SpeedFit] = (),
    points: int = GRID_POINTS,
    replicas: int = REPLICAS,
    progress: Progress | None = None,
) -> TuningResult:
    """Return what should be in force, and why.

    ``queries`` are the trace's, in order of arrival; ``fleet`` is what serves them, at the speed that is believed.
    ``policy`` holds the values in force; ``knob`` is None where they are pinned. With ``workflow`` that
    workflow's parameters alone are varied and its queries alone are scored, though all are played; ``others``
    has the parameters in force of single workflows, its own among them if they differ from the policy's. Without
    ``workflow`` it is the trace's only one, if that has parameters of its own: they would hide all that is varied.
    ``estimates`` are those of the router; without, they are learned from the trace. ``age_seconds`` is how long
    ago the trace's last query arrived. ``advice`` names policies to be played besides; ``speeds`` are put into
    the result as they are. Raises ValueError for a fleet without instances.
    """
    limits = limits or Limits()
    given = _windowed(queries, limits)
    names = {query.workflow for query in given}
    if not workflow and others and len(names) == 1:
        workflow = next((name for name in names if name in others), "")
    before = dict(policy.values(*([others[workflow]] if others and workflow in others else [])))
    found = TuningResult(
        verdict=Verdict.NO_CHANGE,
        message="",
        policy=policy.name,
        objective=objective,
        workflow=workflow,
        parameter=None if knob is None else knob.name,
        before=before,
        parameters=before,
        speeds=tuple(speeds),
        trace=facts(given),
    )
    counted = sum(not workflow or query.workflow == workflow for query in given)
    if lack := _lack(counted, limits, age_seconds):
        return replace(found, verdict=Verdict.TOO_FEW_QUERIES, message=lack)
    rehearsal = Rehearsal(
        given,
        fleet,
        policy=policy,
        objective=objective,
        workflow=workflow,
        others=others,
        estimates=estimates,
    )
    named = [name for name in dict.fromkeys(advice) if name != policy.name]
    planned = (len(named) + 1) * ADVICE_REPLICAS if named else 0
    planned += points + 2 * REFINEMENTS + 2 * replicas if knob else 0
    search = _Search(rehearsal, policy.name, objective, before, planned, progress)
    if knob is not None:
        found = _tuned(found, search, knob, limits, points, range(1, replicas + 1))
    else:
        message = f"{policy.name} has no parameter that is open to tuning"
        found = replace(found, verdict=Verdict.NOTHING_TO_TUNE, message=message)
    return replace(found, advice=search.advice(named))


def facts(queries: Sequence[SimulatedQuery]) -> TraceFacts:
    """Return what names a trace: a hash of all that its queries are, how many there are, how long it is."""
    seen = sha256()
    for query in queries:
        seen.update(repr((query.arrival, query.workflow, query.model, query.stages)).encode())
    seconds = queries[-1].arrival - queries[0].arrival if queries else 0.0
    return TraceFacts(sha256=seen.hexdigest(), queries=len(queries), seconds=seconds)


def _windowed(queries: Sequence[SimulatedQuery], limits: Limits) -> list[SimulatedQuery]:
    """Return the newest queries that count, the first at instant 0."""
    if not queries:
        return []
    oldest = 0.0 if limits.window_seconds is None else queries[-1].arrival - limits.window_seconds
    kept = [query for query in queries if query.arrival >= oldest][-limits.most_queries :]
    first = kept[0].arrival
    return [replace(query, arrival=query.arrival - first) for query in kept]


def _lack(counted: int, limits: Limits, age_seconds: float | None) -> str:
    """Say what the trace lacks to be learned from; empty if nothing."""
    if counted < limits.min_queries:
        return (
            f"{counted} queries are too few to learn from: {limits.min_queries} are wanted (minQueries); "
            "wait for more traffic, look back further (windowSeconds), or want fewer"
        )
    if (
        age_seconds is not None
        and limits.max_age_seconds is not None
        and age_seconds > limits.max_age_seconds
    ):
        return (
            f"the last query came {age_seconds:.0f} s ago, and what is older than {limits.max_age_seconds:.0f} s says "
            "nothing about now; tune again when there is traffic"
        )
    return ""


def _tuned(
    found: TuningResult, search: "_Search", knob: Knob, limits: Limits, points: int, replicas: Sequence[int]
) -> TuningResult:
    now = found.before[knob.name]
    curve = search.curve(knob, points)
    if all(isnan(point.score) for point in curve):
        lack = f"no query of the trace has an SLO, and {found.objective} is about one; give deadlines, or tune P95"
        return replace(found, verdict=Verdict.TOO_FEW_QUERIES, message=lack)
    best = search.best(curve, knob).value
    proposed, goal = _stepped(now, best, knob), _stepped(now, best, replace(knob, max_step=None))
    old = search.scores(replicas, {knob.name: now})
    # Judged is the value that is aimed at: between here and there may be none that is better than this one.
    new = search.scores(replicas, {knob.name: goal})
    gains = [gain(found.objective, old=a, new=b) for a, b in zip(old, new, strict=True)]
    found = replace(
        found,
        proposed=proposed,
        curve=tuple(curve),
        score_before=spread(old),
        score=spread(new),
        gain=spread(gains),
    )
    better = _share(found.objective, median(gains))
    towards = "" if proposed == goal else f" (on the way to {goal:.4g})"
    change = f"{knob.name} {now:.4g} -> {proposed:.4g}{towards}"
    if proposed == now:
        return replace(found, message=f"{knob.name} stays at {now:.4g}: no other value did better")
    if sum(each <= 0 for each in gains) > LOSSES * len(gains) / REPLICAS:
        message = f"no change: {change} would be worth {better} at the median of {len(gains)} traces like this one, which is within noise"
        return replace(found, message=message)
    if median(gains) < limits.min_improvement:
        least = _share(found.objective, limits.min_improvement)
        message = f"no change: {change} would be worth {better}, and {least} is wanted (minImprovement)"
        return replace(found, message=message)
    if proposed != goal:
        stepped = search.scores(replicas, {knob.name: proposed})
        if median(gain(found.objective, old=a, new=b) for a, b in zip(old, stepped, strict=True)) < 0:
            return replace(
                found, message=f"no change: {change} would be worse than {now:.4g}; allow a larger maxStep"
            )
    return replace(
        found,
        verdict=Verdict.TUNED,
        parameters={**found.before, knob.name: proposed},
        message=f"{change}: {found.objective} better by {better}",
    )


def _stepped(now: float, wanted: float, knob: Knob) -> float:
    """Return the value that may come into force: within bounds, and no further than a step away."""
    step = float("inf") if knob.max_step is None else knob.max_step
    stepped = min(max(wanted, now - step), now + step)
    # A value that lies outside of the bounds (they were moved) comes back, be it in more than a step.
    return float(f"{min(max(stepped, knob.low), knob.high):.6g}")


def _share(objective: Objective, share: float) -> str:
    unit = "points" if objective is Objective.ATTAINMENT else "%"
    return f"{100 * share:.1f} {unit}"


class _Search:
    """Play attempts and count them."""

    def __init__(
        self,
        rehearsal: Rehearsal,
        policy: str,
        objective: Objective,
        before: Mapping[str, float],
        planned: int,
        progress: Progress | None,
    ) -> None:
        self._rehearsal = rehearsal
        self._policy = policy
        self._objective = objective
        self._before = before
        self._planned = planned
        self._progress = progress
        self._played: set[Attempt] = set()

    def curve(self, knob: Knob, points: int) -> list[Point]:
        """Return what the values of a grid reach, and those between the best and its neighbours; by value."""
        width = (knob.high - knob.low) / max(1, points - 1)
        values = [knob.low + width * place for place in range(points)] if width else [knob.low]
        found = self._points(knob, [self._before[knob.name], *values])
        for _ in range(REFINEMENTS):
            width /= 2
            if all(isnan(point.score) for point in found):
                break
            best = self.best(found, knob).value
            near = [value for value in (best - width, best + width) if knob.low <= value <= knob.high]
            found = sorted({*found, *self._points(knob, near)}, key=lambda point: point.value)
        return found

    def best(self, curve: Sequence[Point], knob: Knob) -> Point:
        """Return the point that does best together with its neighbours; of equals the one next to the value in force.

        One point of one trace is an accident more often than not; what is good is good nearby too.
        """
        now = self._before[knob.name]
        here = self._score({knob.name: now}, 0)
        known = [point for point in curve if not isnan(point.score)]

        def worth(place: int) -> tuple[float, float]:
            near = known[max(0, place - 1) : place + 2]
            # Bounded, so that what is infinitely better or worse is not so for its neighbours too.
            gains = [
                min(10.0, max(-10.0, gain(self._objective, old=here, new=point.score)))
                for point in (*near, known[place])
            ]
            return fmean(gains), -abs(known[place].value - now)

        within = [place for place, point in enumerate(known) if knob.low <= point.value <= knob.high]
        return known[max(within, key=worth)]

    def scores(self, replicas: Iterable[int], values: Mapping[str, float]) -> list[float]:
        """Return what values reach on each of some replicas."""
        return [self._score(values, replica) for replica in replicas]

    def advice(self, policies: Sequence[str]) -> tuple[Advice, ...]:
        """Return what other policies reach with their defaults, the best first."""
        replicas = range(ADVICE_REPLICAS)
        if not policies:
            return ()
        ours = self.scores(replicas, {})
        found = []
        for name in policies:
            theirs = [self._play(Attempt(policy=name, replica=replica)) for replica in replicas]
            gains = [gain(self._objective, old=a, new=b) for a, b in zip(ours, theirs, strict=True)]
            found.append(Advice(policy=name, score=spread(theirs), gain=spread(gains)))
        return tuple(sorted(found, key=lambda advice: (-advice.gain.median, advice.policy)))

    def _points(self, knob: Knob, values: Iterable[float]) -> list[Point]:
        rounded = dict.fromkeys(float(f"{value:.6g}") for value in values)
        found = [Point(value=value, score=self._score({knob.name: value}, 0)) for value in rounded]
        return sorted(found, key=lambda point: point.value)

    def _score(self, values: Mapping[str, float], replica: int) -> float:
        changed = tuple(sorted({**self._before, **values}.items()))
        return self._play(Attempt(policy=self._policy, values=changed, replica=replica))

    def _play(self, attempt: Attempt) -> float:
        found = self._rehearsal.score(attempt)
        self._played.add(attempt)
        if self._progress is not None:
            self._progress(len(self._played), max(self._planned, len(self._played)))
        return found
