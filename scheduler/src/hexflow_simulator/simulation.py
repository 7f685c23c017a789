"""The simulation: the very kernel of the router, driven by an event heap instead of a clock and HTTP.

Queries arrive with the true lengths of their calls; each stage's calls are released to the kernel as the
router releases them, what the kernel sends goes to a modelled engine, and what the engine finishes goes
back. Nothing here decides where a call runs. One thing differs from the router: stages that are ready
together run side by side here, since there is no draft that must go through them in turn. What passes in
the router while no call is out (statements, answers on their way) is a pause of the trace.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from math import inf

from hexflow_scheduler import (
    Abort,
    Call,
    Decision,
    End,
    Estimates,
    InstanceState,
    Kernel,
    Outcome,
    Parameters,
    Place,
    Policy,
    RecordingKernel,
    Send,
    UnknownCall,
    Usage,
)
from hexflow_simulator.account import Account
from hexflow_simulator.fleet import FleetChange, FleetEvent, SimulatedInstance
from hexflow_simulator.knowledge import InformedEstimates, Knowledge, informed
from hexflow_simulator.query import SimulatedCall, SimulatedQuery
from hexflow_simulator.request import EngineRequest, Finished, RequestTooLargeError
from hexflow_simulator.result import CallResult, QueryResult, SimulationResult
from hexflow_simulator.server import EngineFactory, Server, continuous_batching
from hexflow_simulator.underway import CallUnderWay, Pause, QueryUnderWay, Templates, under_way

_Change = FleetEvent | Server | QueryUnderWay | Pause

NOTICE_SECONDS = 5.0
"""Seconds after which a dead server is known to be gone; before that it is only known by its failures."""

HARD_CAP = "HardCap"
"""Reason of a query that took too many times its SLO."""


def simulate(
    queries: Iterable[SimulatedQuery],
    fleet: Sequence[SimulatedInstance],
    policy: Policy,
    *,
    estimates: Estimates | None = None,
    events: Sequence[FleetEvent] = (),
    engine: EngineFactory = continuous_batching,
    sink: Callable[[str], None] | None = None,
    record_calls: bool = False,
    progress: Callable[[int], None] | None = None,
    on_query: Callable[[QueryResult], None] | None = None,
    on_call: Callable[[CallResult], None] | None = None,
    hard_cap_factor: float | None = None,
    streamed: bool = False,
    knowledge: Knowledge | None = None,
    parameters: Mapping[str, Parameters] | None = None,
) -> SimulationResult:
    """Run queries to their ends under a policy.

    ``queries`` are in order of arrival and may be a generator. ``sink`` gets the event log, line by line.
    ``progress`` is told the number of queries that ended after each. With ``on_query`` each query's
    result is handed on as it ends instead of being kept, so that memory stays flat however many there are.
    ``on_call`` is handed each call as it ends, where ``record_calls`` keeps them all.
    ``hard_cap_factor`` ends a query at that many times its SLO, as the router does; None never does.
    ``streamed`` tells the kernel when first tokens came, as the router does for streams: its log has them then.
    ``knowledge`` makes it expect true lengths, or wrong ones; such a run has no event log.
    ``parameters`` are those of single workflows, by name.
    Raises ValueError for queries out of order, for a fleet without instances and for unknown ids in events.
    """
    if knowledge is not None:
        if sink is not None:
            raise ValueError("a kernel that knows what no kernel can writes no log: it could not be replayed")
        estimates = informed(estimates, knowledge)
    kernel = Kernel(policy, estimates) if sink is None else RecordingKernel(policy, estimates, sink=sink)
    for workflow, values in (parameters or {}).items():
        kernel.parameters(0.0, values, workflow=workflow)
    account = Account(on_query=on_query, on_call=on_call, record_calls=record_calls, progress=progress)
    simulation = _Simulation(
        fleet=fleet,
        kernel=kernel,
        events=events,
        engine=engine,
        account=account,
        hard_cap_factor=hard_cap_factor,
        streamed=streamed,
    )
    simulation.run(queries)
    return account.result(policy.name)


class _Simulation:
    """Drive one kernel and one engine model for each instance."""

    def __init__(
        self,
        *,
        fleet: Sequence[SimulatedInstance],
        kernel: Kernel,
        events: Sequence[FleetEvent],
        engine: EngineFactory,
        account: Account,
        hard_cap_factor: float | None,
        streamed: bool,
    ) -> None:
        if not fleet:
            raise ValueError("a fleet has at least one instance")
        self.kernel = kernel
        known = kernel.estimates
        self.informed = known if isinstance(known, InformedEstimates) else None
        self.engine = engine
        self.account = account
        self.hard_cap_factor = hard_cap_factor
        self.streamed = streamed
        self.sources = {source.instance.instance_id: source for source in fleet}
        if len(self.sources) != len(fleet):
            raise ValueError("instances of a fleet have ids of their own")
        for event in events:
            if event.instance_id not in self.sources:
                raise ValueError(f"no instance of the fleet is called {event.instance_id!r}")
        self.numbers = count()
        self.changes: list[tuple[float, int, _Change]] = []
        """What happens, by time: to a server; a dead one is noticed; a query has waited too long; a pause is over."""
        for event in events:
            self._plan(event.at, event)
        self.servers: list[Server] = []
        self.present: dict[str, Server] = {}
        """The server that each instance of the fleet is now, by its own id."""
        self.known: dict[str, Server] = {}
        """Servers by the id under which the kernel knows them."""
        self.incarnations: dict[str, int] = {}
        self.wakes: list[tuple[float, int]] = []
        self.decisions: deque[Decision] = deque()
        self.live: dict[str, CallUnderWay] = {}
        self.open_queries = 0
        self.templates: Templates = {}
        self.arrived = 0
        self.now = 0.0
        absent = {event.instance_id for event in events if event.kind is FleetChange.JOINS}
        for source in fleet:
            if source.instance.instance_id not in absent:
                self._appear(0.0, source)

    # Time

    def run(self, queries: Iterable[SimulatedQuery]) -> None:
        """Run everything to its end."""
        arrivals = iter(queries)
        upcoming = next(arrivals, None)
        kernel, wakes, servers = self.kernel, self.wakes, self.servers
        while True:
            while wakes and servers[wakes[0][1]].wake != wakes[0][0]:
                heappop(wakes)
            engine_at = wakes[0][0] if wakes else inf
            alarm = kernel.next_wake()
            kernel_at = inf if alarm is None else alarm
            query_at = inf if upcoming is None else upcoming.arrival
            at = min(engine_at, kernel_at, query_at)
            if self.changes and self.changes[0][0] <= at and (self.open_queries or upcoming is not None):
                when, _, change = heappop(self.changes)
                self.now = max(self.now, when)
                if isinstance(change, Server):
                    self._notice(self.now, change)
                elif isinstance(change, QueryUnderWay):
                    self._expire(self.now, change)
                elif isinstance(change, Pause):
                    self._resume(self.now, change)
                else:
                    self._change(self.now, change)
                continue
            if at == inf:
                break
            self.now = at
            if engine_at == at:
                server = servers[heappop(wakes)[1]]
                server.wake = inf
                # Where paces differ, converting an instant there and back may end a hair before the event.
                self._collect(at, server, max(server.engine_time(at), server.due))
            elif kernel_at == at:
                self._apply(at, kernel.wake(at))
            elif upcoming is not None:
                self._arrive(at, upcoming)
                following = next(arrivals, None)
                if following is not None and following.arrival < upcoming.arrival:
                    raise ValueError(
                        f"query {following.query_id!r} arrives at {following.arrival}, before {upcoming.query_id!r}"
                    )
                upcoming = following
        if self.open_queries:
            raise RuntimeError(f"{self.open_queries} queries wait for what never comes")

    def _collect(self, now: float, server: Server, engine_now: float) -> None:
        if server.engine is None:
            return
        for done in server.engine.advance(engine_now):
            self._finished(now, server, done)
        self._watch(now, server)

    def _watch(self, now: float, server: Server) -> None:
        """Wake up when the server may have finished something, unless that is what will happen already."""
        if server.engine is None:
            return
        event = server.engine.next_finish()
        if event is None:
            server.wake = inf
            return
        at = max(now, server.instant(event))
        if at != server.wake:
            server.wake, server.due = at, event
            heappush(self.wakes, (at, server.rank))

    # Queries

    def _arrive(self, now: float, query: SimulatedQuery) -> None:
        of = under_way(query, rank=self.arrived, templates=self.templates, cap=self.hard_cap_factor)
        self.arrived += 1
        self.open_queries += 1
        if of.expires is not None and self.hard_cap_factor is not None:
            self._plan(of.expires, of)
        self._advance(now, of)

    def _advance(self, now: float, of: QueryUnderWay) -> None:
        """Start what is ready; end the query where nothing is left."""
        progress = of.progress
        while ready := progress.ready():
            for name in ready:
                stage = of.stages[name]
                if of.closed:
                    return
                if stage.calls:
                    progress.start(now, name)
                    self._follow(now, of, name, stage.calls, 0)
                else:
                    progress.skip(now, name)
        if progress.done and not of.closed:
            if of.query.closing_seconds:
                self._plan(now + of.query.closing_seconds, Pause(of, "", (), 0))
            else:
                self._close(now, of, "")

    def _follow(
        self, now: float, of: QueryUnderWay, stage: str, truths: Sequence[SimulatedCall], rank: int
    ) -> None:
        """Release calls of which what they come after has ended: at once, or each after its pause."""
        of.open[stage] = of.open.get(stage, 0) + len(truths)
        for pause in {truth.pause_seconds: None for truth in truths}:
            together = tuple([truth for truth in truths if truth.pause_seconds == pause])
            if pause:
                self._plan(now + pause, Pause(of, stage, together, rank))
            else:
                self._release(now, of, stage, together, rank)

    def _resume(self, now: float, pause: Pause) -> None:
        of = pause.of
        if of.closed:
            return
        if pause.truths:
            self._release(now, of, pause.stage, pause.truths, pause.rank)
        else:
            self._close(now, of, "")

    def _release(
        self, now: float, of: QueryUnderWay, stage: str, truths: Sequence[SimulatedCall], rank: int
    ) -> None:
        query = of.query
        budget = None
        if of.deadline is not None:
            costs = self.kernel.stage_costs(
                query.workflow, of.progress.unfinished(), query.model, query.pools
            )
            budget = of.progress.budget(now, stage, costs)
        drops = self.kernel.policy.relief.drop > 0
        calls = []
        for sibling, truth in enumerate(truths):
            call = Call(
                call_id=f"{query.query_id}/{of.calls}",
                query_id=query.query_id,
                workflow=query.workflow,
                tenant=query.tenant,
                tenant_weight=query.tenant_weight,
                stage=stage,
                model=query.model,
                pools=query.pools,
                prompt_tokens=truth.prompt_tokens,
                max_tokens=truth.max_tokens,
                prefix=truth.prefix,
                query_arrival=of.arrival,
                deadline=of.deadline,
                expires=of.expires,
                budget_seconds=budget,
                optional=drops and len(of.stages[stage].calls) > 1,
                round=rank,
                sibling=sibling,
            )
            of.calls += 1
            if self.informed is not None:
                self.informed.tell(call.call_id, truth.output_tokens)
            live = CallUnderWay(call, truth, of, now)
            self.live[call.call_id] = of.live[call.call_id] = live
            calls.append(call)
        self._apply(now, self.kernel.arrive(now, calls))

    def _close(self, now: float, of: QueryUnderWay, reason: str) -> None:
        of.closed = True
        query = of.query
        self._apply(now, self.kernel.query_ended(now, query.query_id, answered=not reason))
        self.open_queries -= 1
        self.account.query_ended(now, of, reason)

    # Decisions

    def _apply(self, now: float, decisions: Sequence[Decision]) -> None:
        """Carry out decisions; one may lead to another input, whose decisions come after these."""
        queue = self.decisions
        if queue:
            queue.extend(decisions)
            return
        queue.extend(decisions)
        while queue:
            self._carry_out(now, queue[0])
            queue.popleft()

    def _carry_out(self, now: float, decision: Decision) -> None:
        live = self.live.get(decision.call_id)
        if live is None:
            return
        if isinstance(decision, Place):
            live.placed = now
        elif isinstance(decision, Send):
            self._send(now, live, decision)
        elif isinstance(decision, End):
            self._end(now, live, decision)
        elif isinstance(decision, Abort):
            self._abort(now, live, decision)

    def _send(self, now: float, live: CallUnderWay, send: Send) -> None:
        server = self.known[send.instance_id]
        live.instance_id = send.instance_id
        live.sent = now
        if send.attempt > 1:
            self.account.retries += 1
        live.attempts = send.attempt
        if server.engine is None:
            # Nobody answers: as the router does, it is not chosen again until it is seen again.
            if server.instance.state is InstanceState.READY:
                self._tell(now, server, InstanceState.UNREADY)
            self._fail(now, send.call_id, "ConnectFailed", retryable=True)
            return
        try:
            server.engine.submit(
                server.engine_time(now),
                EngineRequest(
                    request_id=send.call_id,
                    prompt_tokens=max(1, live.truth.prompt_tokens),
                    output_tokens=max(1, live.truth.output_tokens),
                    prefix=live.truth.prefix,
                    priority=send.priority or 0,
                    stage=live.call.stage,
                ),
            )
        except RequestTooLargeError as problem:
            self._fail(now, send.call_id, str(problem), retryable=False)
            return
        server.calls[send.call_id] = None
        self._watch(now, server)

    def _fail(self, now: float, call_id: str, reason: str, *, retryable: bool) -> None:
        self._apply(now, self.kernel.failed(now, call_id, reason=reason, retryable=retryable))

    def _finished(self, now: float, server: Server, done: Finished) -> None:
        live = self.live.get(done.request_id)
        if live is None:
            return  # withdrawn at this very instant
        server.calls.pop(done.request_id, None)
        live.first_token = server.instant(done.first_token)
        live.cached_tokens = done.cached_tokens
        live.output_tokens = done.output_tokens
        usage = Usage(
            prompt_tokens=live.call.prompt_tokens,
            output_tokens=done.output_tokens,
            cached_tokens=done.cached_tokens,
            first_token_seconds=live.first_token - live.sent if self.streamed else None,
        )
        self._apply(now, self.kernel.finished(now, done.request_id, usage))

    def _abort(self, now: float, live: CallUnderWay, abort: Abort) -> None:
        server = self.known[abort.instance_id]
        server.calls.pop(abort.call_id, None)
        if server.engine is not None:
            server.engine.cancel(server.engine_time(now), abort.call_id)
            self._watch(now, server)

    def _end(self, now: float, live: CallUnderWay, end: End) -> None:
        of, stage = live.of, live.call.stage
        del self.live[end.call_id]
        del of.live[end.call_id]
        self.account.call_ended(now, live, end.outcome)
        of.open[stage] -= 1
        if end.outcome is not Outcome.FINISHED and end.outcome is not Outcome.DROPPED:
            self._give_up(now, of, stage, end)
        elif not of.closed:
            if live.truth.then and end.outcome is Outcome.FINISHED:
                self._follow(now, of, stage, live.truth.then, live.call.round + 1)
            elif not of.open[stage]:
                of.progress.finish(now, stage)
                self._advance(now, of)

    def _give_up(self, now: float, of: QueryUnderWay, stage: str, end: End) -> None:
        """Fail a query of which a call cannot be had, and withdraw the others."""
        if not of.closed:
            of.progress.fail(now, stage)
            self._withdraw(now, of, end.reason or end.outcome.value)

    def _expire(self, now: float, of: QueryUnderWay) -> None:
        if not of.closed:
            self._withdraw(now, of, HARD_CAP)

    def _withdraw(self, now: float, of: QueryUnderWay, reason: str) -> None:
        of.closed = True
        for call_id in tuple(of.live):
            with suppress(UnknownCall):  # its End may be among the decisions not carried out yet
                self._apply(now, self.kernel.cancel(now, call_id))
        self._close(now, of, reason)

    # The fleet

    def _appear(self, now: float, source: SimulatedInstance) -> None:
        name = source.instance.instance_id
        number = self.incarnations[name] = self.incarnations.get(name, 0) + 1
        instance = (
            source.instance if number == 1 else replace(source.instance, instance_id=f"{name}~{number}")
        )
        server = Server(
            now, source=source, instance=instance, engine=self.engine(source), rank=len(self.servers)
        )
        server.wake = inf
        self.servers.append(server)
        self.present[name] = server
        self.known[instance.instance_id] = server
        self._apply(now, self.kernel.instance(now, instance))

    def _plan(self, at: float, change: _Change) -> None:
        heappush(self.changes, (at, next(self.numbers), change))

    def _change(self, now: float, event: FleetEvent) -> None:
        server = self.present.get(event.instance_id)
        if event.kind is FleetChange.JOINS:
            if server is None:
                self._appear(now, self.sources[event.instance_id])
        elif event.kind is FleetChange.DIES:
            if server is not None and server.engine is not None:
                self._die(now, server)
        elif event.kind is FleetChange.SLOWS:
            if server is not None and server.engine is not None:
                self._pace(now, server, event.factor)
        elif server is not None and server.engine is not None:
            self._pace(now, server, 1.0)
        else:
            if server is not None:
                self._notice(now, server)
            self._appear(now, self.sources[event.instance_id])

    def _die(self, now: float, server: Server) -> None:
        self._collect(now, server, server.engine_time(now))
        server.engine = None
        server.wake = inf
        self._plan(now + NOTICE_SECONDS, server)
        for call_id in tuple(server.calls):
            server.calls.pop(call_id, None)
            if call_id in self.live:
                self._fail(now, call_id, "ConnectionLost", retryable=True)

    def _pace(self, now: float, server: Server, factor: float) -> None:
        self._collect(now, server, server.engine_time(now))
        server.set_pace(now, factor)
        self._watch(now, server)

    def _notice(self, now: float, server: Server) -> None:
        """Let the kernel know that a dead server is gone for good."""
        if server.instance.state is not InstanceState.GONE:
            self._tell(now, server, InstanceState.GONE)

    def _tell(self, now: float, server: Server, state: InstanceState) -> None:
        server.instance = replace(server.instance, state=state)
        self._apply(now, self.kernel.instance(now, server.instance))
