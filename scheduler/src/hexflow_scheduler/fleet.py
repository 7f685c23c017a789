"""The fleet: all instances with their loads, and which calls work for which query.

This is what a dispatch rule is given. While a rule decides it may put a call on instances and take it
off as often as it likes, each put being seen by the next look; the kernel makes the last one real.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from hexflow_scheduler.active import ActiveCall, OpenQuery, Phase
from hexflow_scheduler.call import Call
from hexflow_scheduler.cost import MeanSpeed
from hexflow_scheduler.errors import UnknownInstance
from hexflow_scheduler.estimate import Estimates
from hexflow_scheduler.instance import Instance
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.ordering import QueueRule
from hexflow_scheduler.queue import queue_for
from hexflow_scheduler.urgency import RELAXED, latest_start, time_allowed

MOST_IDLE_QUERIES = 10_000
"""Queries without a live call of which an end is awaited; the one idle for longest makes room (its end may never come)."""


class Fleet:
    """Hold the instances that are known, in the order they appeared, and the queries that are open."""

    def __init__(self, estimates: Estimates, ordering: QueueRule) -> None:
        self.estimates = estimates
        self._ordering = ordering
        self._loads: dict[str, InstanceLoad] = {}
        self._queries: dict[str, OpenQuery] = {}
        self._idle: dict[str, None] = {}
        self.demoted = 0
        """How many open queries give way."""
        self._turn = 0
        self._bounded = False
        """Whether any instance states how much context it takes."""
        self._able: dict[tuple[str, frozenset[str] | None], list[InstanceLoad]] = {}
        """The ready instances for each model and set of pools that was asked for since the fleet last changed."""
        self._means: dict[tuple[str, frozenset[str] | None], MeanSpeed] = {}
        """Mean speeds that were asked for since a speed last changed."""

    def __iter__(self) -> Iterator[InstanceLoad]:
        return iter(self._loads.values())

    def __len__(self) -> int:
        return len(self._loads)

    def __contains__(self, instance_id: str) -> bool:
        return instance_id in self._loads

    def load(self, instance_id: str) -> InstanceLoad:
        """Return the load of an instance; raises UnknownInstance."""
        try:
            return self._loads[instance_id]
        except KeyError:
            raise UnknownInstance(instance_id) from None

    def calls_of(self, query_id: str) -> Mapping[str, ActiveCall]:
        """Return the live calls of a query by id, wherever they are."""
        query = self._queries.get(query_id)
        return MappingProxyType(query.calls if query else {})

    @property
    def open_queries(self) -> int:
        """How many queries have live calls, or had some and have not ended."""
        return len(self._queries)

    def candidates(self, active: ActiveCall) -> list[InstanceLoad]:
        """Return the instances that can take the call now, in the order they appeared: not to be changed.

        Those that failed it are left out while there are others; those whose context may be too short
        for its longest answer, too.
        """
        call = active.call
        able = self._able.get((call.model, call.pools))
        if able is None:
            able = self._able[call.model, call.pools] = [
                load
                for load in self._loads.values()
                if load.ready and can_serve(load.instance, model=call.model, pools=call.pools, tokens=0)
            ]
        if self._bounded:
            able = [load for load in able if serves(load.instance, call)]
        if active.failed_on:
            able = [load for load in able if load.instance_id not in active.failed_on] or able
        if self._bounded:
            able = [load for load in able if has_room(load.instance, call)] or able
        return able

    def mean_speed(self, model: str, pools: frozenset[str] | None) -> MeanSpeed:
        """Return the mean speed of the instances that could serve a model, ready or not."""
        mean = self._means.get((model, pools))
        if mean is None:
            mean = self._means[model, pools] = MeanSpeed(
                [
                    load.speed
                    for load in self._loads.values()
                    if can_serve(load.instance, model=model, pools=pools, tokens=0)
                ]
            )
        return mean

    def put(self, active: ActiveCall, load: InstanceLoad) -> None:
        """Put a call that does not run in the queue of an instance, taking it off another."""
        if active.instance_id == load.instance_id:
            return
        self.take(active)
        load.price(active)
        active.latest_start = latest_start(
            released=active.released,
            allowed=self.time_allowed(active),
            compute_seconds=active.alone_seconds,
        )
        if not active.query.slo_seconds:
            self.slo_seconds(active)
        active.key = self._ordering.key(active)
        load.enqueue(active)
        self._turn += 1
        load.last_put = self._turn

    def take(self, active: ActiveCall) -> None:
        """Take a waiting call off its instance; nothing happens if it waits for none."""
        if active.instance_id is not None and active.phase is Phase.WAITING:
            self._loads[active.instance_id].dequeue(active)

    def slo_seconds(self, active: ActiveCall) -> float:
        """Return the seconds that the call's query may take in all, settled when its first call is placed.

        From its arrival to its deadline, but no less than this call alone takes. Without a deadline,
        ``RELAXED`` times what queries of its workflow take; while that is unknown, what this call does.
        """
        query = active.query
        if not query.slo_seconds:
            deadline = active.call.deadline
            # A call without a token to prefill or decode takes no time; some is needed to divide by.
            typical = self._typical(active) or max(load.speed.quantum for load in self)
            if deadline is not None:
                query.slo_seconds = max(deadline - query.arrival, typical)
            else:
                mean = self.estimates.query_seconds(query.workflow)
                query.slo_seconds = RELAXED * max(mean or 0.0, typical)
        return query.slo_seconds

    def time_allowed(self, active: ActiveCall) -> float:
        """Return the seconds that the call may take from its release (t_slo), settled when it is first asked for."""
        if active.allowed is None:
            call = active.call
            known = call.budget_seconds is not None or call.deadline is not None
            active.allowed = time_allowed(
                released=active.released,
                deadline=call.deadline,
                budget_seconds=call.budget_seconds,
                typical_seconds=0.0 if known else self._typical(active),
            )
        return active.allowed

    # What follows is for the kernel.

    def query(self, now: float, call: Call) -> OpenQuery:
        """Return the query of a call that arrives, opened if it is new. None arrives later than ``now``."""
        query_id = call.query_id
        query = self._queries.get(query_id)
        if query is None:
            arrival = min(call.query_arrival, now)
            query = OpenQuery(query_id=query_id, workflow=call.workflow, arrival=arrival)
            self._queries[query_id] = query
        else:
            self._idle.pop(query_id, None)
        return query

    def dismiss(self, active: ActiveCall) -> None:
        """Forget a call that ended; its query is kept until its own end."""
        query = active.query
        del query.calls[active.call.call_id]
        if not query.calls:
            if query.ended:
                self._forget(query)
            else:
                self._rest(query)

    def close(self, query_id: str) -> OpenQuery | None:
        """Forget a query that has ended and return it; None for one that is not open (any more)."""
        query = self._queries.get(query_id)
        if query is None or query.ended:
            return None
        query.ended = True
        if not query.calls:
            self._forget(query)
        return query

    def _forget(self, query: OpenQuery) -> None:
        del self._queries[query.query_id]
        self._idle.pop(query.query_id, None)
        self.demoted -= query.demoted

    def _rest(self, query: OpenQuery) -> None:
        self._idle[query.query_id] = None
        if len(self._idle) > MOST_IDLE_QUERIES:
            self._forget(self._queries[next(iter(self._idle))])

    def add(self, instance: Instance) -> InstanceLoad:
        """Add an instance."""
        load = InstanceLoad(instance, self.estimates.speed(instance), queue_for(self._ordering))
        self._loads[instance.instance_id] = load
        self._changed()
        return load

    def change(self, load: InstanceLoad, instance: Instance) -> None:
        """Take a new description of an instance."""
        load.instance = instance
        self._changed()

    def remove(self, load: InstanceLoad) -> None:
        """Forget an instance on which nothing runs or waits any more, and what was learned of it."""
        del self._loads[load.instance_id]
        self._changed()
        self.estimates.forget(load.instance_id)

    def reprice(self, now: float, load: InstanceLoad) -> None:
        """Predict anew what waits for an instance whose profile changed, and re-order its queue."""
        self.pace(now, load)
        for active in load.queue.ordered(now):
            load.dequeue(active)
            self.put(active, load)

    def pace(self, now: float, load: InstanceLoad) -> None:
        """Take over what is known by now of an instance's speed."""
        load.learn_speed(now, self.estimates.speed(load.instance))
        self._means.clear()

    def _changed(self) -> None:
        self._able.clear()
        self._means.clear()
        self._bounded = any(load.instance.max_context is not None for load in self._loads.values())

    def _typical(self, active: ActiveCall) -> float:
        """Return the mean seconds of the call alone over its candidates, or a sample of many."""
        loads = self.candidates(active) or [*self._loads.values()]
        sample = loads[:: max(1, len(loads) // 8)]
        return sum(load.alone_seconds(active) for load in sample) / len(sample)


def serves(instance: Instance, call: Call) -> bool:
    """Say whether an instance serves the call's model, belongs to its pools and can hold its prompt."""
    return can_serve(instance, model=call.model, pools=call.pools, tokens=call.prompt_tokens)


def can_serve(instance: Instance, *, model: str, pools: frozenset[str] | None, tokens: int) -> bool:
    """Say whether an instance, whatever its state, could take a prompt of ``tokens`` for a model."""
    return (
        model in instance.models
        and (pools is None or instance.pool in pools)
        and (instance.max_context is None or tokens < instance.max_context)
    )


def has_room(instance: Instance, call: Call) -> bool:
    """Say whether prompt and longest answer fit the instance's context."""
    return instance.max_context is None or call.prompt_tokens + call.max_tokens <= instance.max_context
