"""A rehearsal: a trace, and traffic like it, played under any policy and any values of its parameters.

Every attempt on the same replica has the very same queries at the very same instants, and begins with the
same estimates, so that attempts are compared pair by pair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hexflow_scheduler import Estimates, Parameters, Policy
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.objective import Objective, score
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.resample import resampled
from hexflow_simulator.result import QueryResult
from hexflow_simulator.simulation import simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Say what is played: a policy, values of its parameters, and on which traffic."""

    policy: str
    values: tuple[tuple[str, float], ...] = ()
    replica: int = 0
    """0 is the trace as it was recorded, each other number is a resampling of it."""


class Rehearsal:
    """Play attempts, each once."""

    def __init__(
        self,
        queries: Sequence[SimulatedQuery],
        fleet: Sequence[SimulatedInstance],
        *,
        policy: Policy,
        objective: Objective,
        workflow: str = "",
        others: Mapping[str, Parameters] | None = None,
        estimates: Estimates | None = None,
    ) -> None:
        self._queries = tuple(queries)
        self._fleet = tuple(fleet)
        self._policy = policy
        """In force: what plays the queries of other workflows too, and whose relief and patience apply."""
        self._objective = objective
        self._workflow = workflow
        self._others = dict(others or {})
        self._scores: dict[Attempt, float] = {}
        self._replicas: dict[int, Sequence[SimulatedQuery]] = {0: self._queries}
        self._learned = (self._learn() if estimates is None else estimates).to_data()

    def score(self, attempt: Attempt) -> float:
        """Return what an attempt reaches on the objective."""
        if attempt not in self._scores:
            self._scores[attempt] = score(
                self._objective, self._replica(attempt.replica), lambda queries: self._play(attempt, queries)
            )
        return self._scores[attempt]

    def _replica(self, number: int) -> Sequence[SimulatedQuery]:
        if number not in self._replicas:
            self._replicas[number] = resampled(self._queries, number)
        return self._replicas[number]

    def _play(self, attempt: Attempt, queries: Sequence[SimulatedQuery]) -> Sequence[QueryResult]:
        own = Policy.named(attempt.policy)
        parameters = Parameters(**dict(attempt.values))
        same = own.dispatch == self._policy.dispatch
        base = self._policy.parameters if same else Parameters()
        policy = Policy(
            dispatch=own.dispatch,
            queue=own.queue,
            parameters=base if self._workflow else parameters.over(base),
            park_seconds=self._policy.park_seconds,
            relief=self._policy.relief,
        )
        by_workflow = dict(self._others) if same else {}
        if self._workflow:
            by_workflow[self._workflow] = parameters
        result = simulate(
            queries,
            self._fleet,
            policy,
            estimates=Estimates.from_data(self._learned),
            parameters=by_workflow,
        )
        if not self._workflow:
            return result.queries
        return [each for each in result.queries if each.workflow == self._workflow]

    def _learn(self) -> Estimates:
        """Return what a router knows that has served such traffic for a while."""
        estimates = Estimates()
        simulate(self._queries, self._fleet, self._policy, estimates=estimates, parameters=self._others)
        return estimates
