"""The kernel: who runs what, where and when. A pure state machine with explicit time.

Every input takes ``now`` and returns what is decided by it; the kernel never sleeps, reads a clock, logs
or does I/O. The router turns decisions into HTTP, the simulator into modelled completions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType

from hexflow_scheduler.active import ActiveCall, OpenQuery, Phase
from hexflow_scheduler.call import Call, Usage, expiry, rest_class
from hexflow_scheduler.decision import Abort, Decision, End, Outcome, Place, Send
from hexflow_scheduler.errors import CallNotRunning, DuplicateCall, InvalidInput, SchedulerError, UnknownCall
from hexflow_scheduler.estimate import Estimates
from hexflow_scheduler.fleet import Fleet, can_serve, serves
from hexflow_scheduler.instance import Instance, InstanceState
from hexflow_scheduler.learning import learn, learn_query
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.ordering import Watcher
from hexflow_scheduler.parameter import Parameters
from hexflow_scheduler.parking import Parking
from hexflow_scheduler.policy import DISPATCH_RULES, QUEUE_RULES, Policy
from hexflow_scheduler.relief import Admission, admission, demote, dispensable, hopeless
from hexflow_scheduler.urgency import urgency
from hexflow_scheduler.validity import check_call, check_instance, check_instant, check_usage
from hexflow_scheduler.view import KernelView, instance_view


class Kernel:
    """Decide which instance runs each call, in which order, and what becomes of it.

    Every call that arrives ends exactly once (``End``). Instants are seconds since the epoch; one that
    lies before an earlier input's counts as that one. An input that raises has changed nothing.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        estimates: Estimates | None = None,
        max_attempts: int = 3,
    ) -> None:
        if max_attempts < 1:
            raise InvalidInput(f"max_attempts counts the first try too: at least 1, not {max_attempts}")
        self.policy = policy or Policy.named()
        self.estimates = estimates if estimates is not None else Estimates()
        self.max_attempts = max_attempts
        self._dispatch = DISPATCH_RULES[self.policy.dispatch]()
        self._ordering = QUEUE_RULES[self.policy.queue]()
        self._watcher = self._ordering if isinstance(self._ordering, Watcher) else None
        self._fleet = Fleet(self.estimates, self._ordering)
        self._calls: dict[str, ActiveCall] = {}
        self._parking = Parking()
        self._parameters = self.policy.values()
        self._workflow_parameters: dict[str, Parameters] = {}
        self._arrivals = 0
        self._now = 0.0

    # Inputs

    def instance(self, now: float, instance: Instance) -> tuple[Decision, ...]:
        """Take note that an instance appeared, changed, drains or is gone.

        Only a READY one holds waiting calls; those of any other move, or park where there is no other.
        What ran on one that is GONE is aborted and tried elsewhere. Telling the same again, or of one
        that is unknown and GONE, changes nothing.
        """
        check_instance(instance)
        out = self._begin(now)
        if instance.state is InstanceState.GONE:
            if instance.instance_id in self._fleet:
                self._lose(self._fleet.load(instance.instance_id), out)
        elif instance.instance_id not in self._fleet:
            self._welcome(self._fleet.add(instance), (), out)
        elif (load := self._fleet.load(instance.instance_id)).instance != instance:
            repriced = load.instance.profile != instance.profile
            self._fleet.change(load, instance)
            homeless = [
                a for a in load.queue.ordered(self._now) if not (load.ready and serves(instance, a.call))
            ]
            for active in homeless:
                self._fleet.take(active)
            if repriced:
                self._fleet.reprice(self._now, load)
            self._welcome(load, homeless, out)
        return tuple(out)

    def arrive(self, now: float, calls: Sequence[Call]) -> tuple[Decision, ...]:
        """Take calls that were released together, and place them together.

        Raises DuplicateCall if one of them is live already, InvalidInput if one makes no sense.
        """
        self._check_arrival(calls)
        out = self._begin(now)
        siblings = []
        for call in calls:
            self.estimates.arrived(call)
            query = self._fleet.query(self._now, call)
            active = self._activate(call, query)
            self._arrivals += 1
            self._calls[call.call_id] = query.calls[call.call_id] = active
            siblings.append(active)
        self._place(siblings, out)
        return tuple(out)

    def finished(self, now: float, call_id: str, usage: Usage) -> tuple[Decision, ...]:
        """Take note that a running call was answered, and learn from what it took."""
        active, load = self._running(call_id)
        check_usage(usage)
        out = self._begin(now)
        learn(self.estimates, self._now, active=active, load=load, usage=usage)
        self._fleet.pace(self._now, load)
        load.stop(self._now, active)
        query = active.query
        query.ends[rest_class(active.call)] = self._now
        self._end(active, Outcome.FINISHED, "", out, usage)
        if self.policy.relief.drop:
            self._drop(query, active.call, out)
        self._fill([load], out)
        return tuple(out)

    def failed(self, now: float, call_id: str, *, reason: str, retryable: bool) -> tuple[Decision, ...]:
        """Take note that a running call failed: try another instance, or end it.

        It is tried again while it is ``retryable``, was sent fewer than ``max_attempts`` times and has
        not expired; on an instance that failed it only where there is no other.
        """
        active, load = self._running(call_id)
        out = self._begin(now)
        load.stop(self._now, active)
        self._retry([active], load, reason=reason, retryable=retryable, out=out)
        self._fill([load], out)
        return tuple(out)

    def cancel(self, now: float, call_id: str) -> tuple[Decision, ...]:
        """End a call that nobody wants any more, aborting it where it runs."""
        active = self._call(call_id)
        out = self._begin(now)
        if active.call.call_id in self._calls:
            self._withdraw(active, Outcome.CANCELLED, "", out)
        return tuple(out)

    def query_ended(self, now: float, query_id: str, *, answered: bool = True) -> tuple[Decision, ...]:
        """Take note that a query has ended, and learn from one that was ``answered`` how long it went on.

        A call that is a query of its own (it repeats its own id) ends that by itself. Telling of a query
        that had no calls, or twice, changes nothing; never telling costs what might have been learned.
        """
        out = self._begin(now)
        self._close(query_id, answered)
        return tuple(out)

    def wake(self, now: float) -> tuple[Decision, ...]:
        """Give up the parked calls whose time has come (every other input does so too)."""
        return tuple(self._begin(now))

    def load(self, now: float, instance_id: str, foreign_running: int) -> tuple[Decision, ...]:
        """Take the engine's count of sequences that it runs for others."""
        load = self._fleet.load(instance_id)
        if foreign_running < 0:
            raise InvalidInput(f"foreign_running is a count, not {foreign_running}")
        out = self._begin(now)
        load.note_foreign(self._now, foreign_running)
        self._fill([load], out)
        return tuple(out)

    def parameters(self, now: float, parameters: Parameters, *, workflow: str = "") -> tuple[Decision, ...]:
        """Change parameters for what is placed from now on: of one workflow, or of all that have none.

        Raises InvalidParameter for a name or value that the policy does not take.
        """
        values = self.policy.values(parameters)
        out = self._begin(now)
        if workflow:
            self._workflow_parameters[workflow] = values
        else:
            self._parameters = values
        return tuple(out)

    # Questions

    def next_wake(self) -> float | None:
        """Return the instant at which ``wake`` has something to do; None where there is none."""
        return self._parking.next_alarm()

    def stage_seconds(
        self, workflow: str, stage: str, model: str, pools: frozenset[str] | None = None
    ) -> float:
        """Return the expected seconds of a stage over the instances that could serve it."""
        return self.stage_costs(workflow, (stage,), model, pools)[stage]

    def stage_costs(
        self, workflow: str, stages: Sequence[str], model: str, pools: frozenset[str] | None = None
    ) -> dict[str, float]:
        """Return the expected seconds of several stages by name, as ``Progress.budget`` takes them."""
        mean = self._fleet.mean_speed(model, pools)
        seconds = self.estimates.stage_seconds
        return {stage: seconds(workflow, stage, model, mean) for stage in stages}

    def admits(self, now: float, call: Call) -> Admission:
        """Return whether a query whose first call would be this one could be in time, as things are now.

        Its SLO is the time to the call's deadline; one without a deadline is always admitted. Nothing changes
        by asking, so nothing is recorded. Whether a query is refused, or gets fewer candidates, is the asker's.
        """
        check_instant(now)
        check_call(call)
        if call.deadline is None:
            return Admission(admitted=True, expected_seconds=0.0)
        active = self._activate(call, OpenQuery(query_id="", workflow="", arrival=now))
        return admission(now, active, self._fleet, slo_seconds=call.deadline - now)

    def view(self) -> KernelView:
        """Return a copy of all that the kernel knows, as of its last input."""
        return KernelView(
            now=self._now,
            policy=self.policy.name,
            parameters=self._parameters,
            workflow_parameters=MappingProxyType(dict(self._workflow_parameters)),
            instances=tuple(instance_view(self._now, load) for load in self._fleet),
            parked=tuple(active.call for active in self._parking),
            open_queries=self._fleet.open_queries,
        )

    # Deciding

    def _activate(self, call: Call, query: OpenQuery) -> ActiveCall:
        return ActiveCall(
            call=call,
            query=query,
            order=self._arrivals,
            released=self._now,
            output_tokens=self.estimates.output_tokens(call),
            rest_seconds=self.estimates.rest_seconds(call),
        )

    def _demote(self, calls: Iterable[ActiveCall]) -> None:
        fleet = self._fleet
        for active in calls:
            room = fleet.demoted < self.policy.relief.demote * fleet.open_queries
            if room and not active.query.demoted and hopeless(self._now, active, fleet):
                demote(active, fleet)
                fleet.demoted += 1

    def _drop(self, query: OpenQuery, answered: Call, out: list[Decision]) -> None:
        last = dispensable(self._now, query, answered, self.estimates, self.policy.relief.drop)
        if last is not None:
            reason = "its query is late and has an answer without it"
            self._withdraw(last, Outcome.DROPPED, reason, out)

    def _withdraw(self, active: ActiveCall, outcome: Outcome, reason: str, out: list[Decision]) -> None:
        load = self._fleet.load(active.instance_id) if active.instance_id is not None else None
        if load is not None and active.phase is Phase.RUNNING:
            load.stop(self._now, active)
            out.append(Abort(call_id=active.call.call_id, instance_id=load.instance_id))
        self._fleet.take(active)
        self._parking.remove(active)
        self._end(active, outcome, reason, out)
        if load is not None:
            self._fill([load], out)

    def _begin(self, now: float) -> list[Decision]:
        check_instant(now)
        self._now = max(self._now, now)
        out: list[Decision] = []
        for active in self._parking.due(self._now):
            self._end(active, Outcome.EXPIRED, _no_instance(active.call), out)
        return out

    def _place(self, calls: Iterable[ActiveCall], out: list[Decision]) -> None:
        by_workflow: dict[str, list[ActiveCall]] = {}
        for active in calls:
            if self._fleet.candidates(active):
                by_workflow.setdefault(active.call.workflow, []).append(active)
            else:
                self._park(active, out)
        touched: dict[str, InstanceLoad] = {}
        for workflow, siblings in by_workflow.items():
            if self.policy.relief.demote:
                self._demote(siblings)
            values = self._workflow_parameters.get(workflow, self._parameters)
            choices = {
                choice.active.order: choice
                for choice in self._dispatch.place(self._now, siblings, self._fleet, values)
            }
            for active in siblings:
                choice = choices.get(active.order)
                if choice is None:
                    raise SchedulerError(
                        f"{self.policy.dispatch} chose no instance for {active.call.call_id!r}"
                    )
                self._fleet.put(active, choice.load)
                touched[choice.load.instance_id] = choice.load
                out.append(
                    Place(
                        call_id=active.call.call_id,
                        instance_id=choice.load.instance_id,
                        urgency=urgency(self._now, active.latest_start),
                        predicted_seconds=active.predicted_seconds,
                        output_tokens=active.output_tokens,
                        scores=choice.scores,
                        demoted=active.query.demoted,
                    )
                )
        self._fill(touched.values(), out)

    def _fill(self, loads: Iterable[InstanceLoad], out: list[Decision]) -> None:
        for load in loads:
            while (
                load.ready and (active := load.queue.first(self._now)) is not None and load.can_start(active)
            ):
                load.start(self._now, active)
                if self._watcher is not None:
                    self._watcher.sent(self._now, active)
                takes_priority = load.instance.takes_priority
                out.append(
                    Send(
                        call_id=active.call.call_id,
                        instance_id=load.instance_id,
                        urgency=urgency(self._now, active.latest_start),
                        priority=self._ordering.priority(active) if takes_priority else None,
                        attempt=active.attempt,
                    )
                )

    def _park(self, active: ActiveCall, out: list[Decision]) -> None:
        call = active.call
        similar = [
            load
            for load in self._fleet
            if can_serve(load.instance, model=call.model, pools=call.pools, tokens=0)
        ]
        longest = max((load.instance.max_context or 0 for load in similar), default=0)
        until = self._patience(call)
        if similar and not any(serves(load.instance, call) for load in similar):
            reason = f"a prompt of {call.prompt_tokens} tokens fits no instance of {call.model}; the longest context is {longest}"
            self._end(active, Outcome.UNSERVABLE, reason, out)
        elif until <= self._now:
            self._end(active, Outcome.EXPIRED, _no_instance(call), out)
        else:
            self._parking.add(active, until=until)

    def _patience(self, call: Call) -> float:
        # Until its deadline; one that is late but wanted, or has no deadline, as long as the policy says.
        if call.deadline is not None and self._now < call.deadline:
            return call.deadline
        expires = expiry(call)
        patience = self._now + self.policy.park_seconds
        return patience if expires is None else min(patience, expires)

    def _welcome(self, load: InstanceLoad, homeless: Iterable[ActiveCall], out: list[Decision]) -> None:
        if load.ready:
            waiting = [active for active in self._parking if self._fleet.candidates(active)]
            for active in waiting:
                self._parking.remove(active)
            homeless = [*homeless, *waiting]
        self._place(homeless, out)
        self._fill([load], out)

    def _lose(self, load: InstanceLoad, out: list[Decision]) -> None:
        load.instance = replace(load.instance, state=InstanceState.GONE)
        waiting, running = load.queue.ordered(self._now), list(load.running.values())
        for active in waiting:
            self._fleet.take(active)
        for active in running:
            load.stop(self._now, active)
            out.append(Abort(call_id=active.call.call_id, instance_id=load.instance_id))
        self._fleet.remove(load)
        self._place(waiting, out)
        self._retry(running, load, reason=f"instance {load.instance_id} is gone", retryable=True, out=out)

    def _retry(
        self,
        calls: Iterable[ActiveCall],
        load: InstanceLoad,
        *,
        reason: str,
        retryable: bool,
        out: list[Decision],
    ) -> None:
        again = []
        for active in calls:
            expires = expiry(active.call)
            wanted = expires is None or self._now < expires
            if retryable and wanted and active.attempt < self.max_attempts:
                active.failed_on.add(load.instance_id)
                again.append(active)
            else:
                self._end(active, Outcome.FAILED, reason, out)
        self._place(again, out)

    def _end(
        self,
        active: ActiveCall,
        outcome: Outcome,
        reason: str,
        out: list[Decision],
        usage: Usage | None = None,
    ) -> None:
        call_id = active.call.call_id
        if self._watcher is not None:
            self._watcher.ended(self._now, active, usage)
        del self._calls[call_id]
        self._fleet.dismiss(active)
        if call_id == active.call.query_id:
            self._close(call_id, outcome is Outcome.FINISHED)
        out.append(End(call_id=call_id, outcome=outcome, reason=reason))

    def _close(self, query_id: str, answered: bool) -> None:
        query = self._fleet.close(query_id)
        if query is not None and answered:
            learn_query(self.estimates, self._now, query)

    def _call(self, call_id: str) -> ActiveCall:
        try:
            return self._calls[call_id]
        except KeyError:
            raise UnknownCall(call_id) from None

    def _running(self, call_id: str) -> tuple[ActiveCall, InstanceLoad]:
        active = self._call(call_id)
        if active.phase is not Phase.RUNNING or active.instance_id is None:
            raise CallNotRunning(call_id)
        return active, self._fleet.load(active.instance_id)

    def _check_arrival(self, calls: Sequence[Call]) -> None:
        seen: set[str] = set()
        for call in calls:
            check_call(call)
            if call.call_id in self._calls or call.call_id in seen:
                raise DuplicateCall(call.call_id)
            seen.add(call.call_id)


def _no_instance(call: Call) -> str:
    return f"no instance of {call.model} could take it in time"
