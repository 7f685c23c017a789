"""A rig that plays any sequence of steps to a kernel and checks every decision against its own ledger.

The ledger is naive on purpose: it looks at everything after every input, sorts instead of keeping a heap,
and sums instead of counting along.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from hexflow_scheduler import (
    Abort,
    Call,
    Decision,
    End,
    Instance,
    InstanceState,
    Kernel,
    Parameters,
    Place,
    PrefixBlock,
    Profile,
    Send,
    Usage,
)
from hexflow_scheduler.ordering import MovingRule
from hexflow_scheduler.policy import QUEUE_RULES

NAMES = ("a", "b", "c", "d")
SPEEDS = (1.0, 1.7, 2.9)


@dataclass(frozen=True, slots=True)
class Step:
    """Hold one thing to do: its name, and small numbers that say to whom and how."""

    name: str
    numbers: tuple[int, ...]


@dataclass(slots=True)
class Entry:
    """Keep what the ledger knows of a live call."""

    call: Call
    order: int
    output_tokens: float = 0.0
    instance_id: str | None = None
    running: bool = False
    urgency: float = 0.0
    urgency_at: float = 0.0
    attempt: int = 0


@dataclass(slots=True)
class Rig:
    """Play steps to a kernel; ``unit`` is the number of seconds that one unit of the steps' time lasts."""

    kernel: Kernel
    unit: float = 1.0
    now: float = 0.0
    arrived: int = 0
    live: dict[str, Entry] = field(default_factory=dict)
    ends: dict[str, End] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    generations: int = 0
    changing: bool = False
    """Whether an instance is changing, which may change urgencies before a Send."""
    decisions: list[Decision] = field(default_factory=list)

    def play(self, steps: Iterable[Step]) -> None:
        """Play all steps."""
        for step in steps:
            getattr(self, f"_step_{step.name}")(*step.numbers)
            self.check()

    def finish_all(self) -> None:
        """Let everything that runs finish and everything parked expire."""
        while self.live:
            running = [call_id for call_id, entry in self.live.items() if entry.running]
            if running:
                self._finish(running[0], output=50)
            else:
                alarm = self.kernel.next_wake()
                assert alarm is not None, f"nothing will ever end {[*self.live]}"
                self.now = max(self.now, alarm)
                self._tell(self.kernel.wake, self.now)
            self.check()

    @property
    def moving(self) -> bool:
        """Whether the order of what waits moves (``tests/property/test_queue_rules.py`` has those rules)."""
        return isinstance(QUEUE_RULES[self.kernel.policy.queue](), MovingRule)

    # Steps

    def _step_arrive(
        self, count: int, prompt: int, samples: int, deadline: int, budget: int, kind: int
    ) -> None:
        calls = [self._call(rank, prompt, samples, deadline, budget, kind) for rank in range(count)]
        for call in calls:
            self.live[call.call_id] = Entry(call=call, order=self.arrived)
            self.arrived += 1
        self._tell(self.kernel.arrive, self.now, calls)

    def _call(self, rank: int, prompt: int, samples: int, deadline: int, budget: int, kind: int) -> Call:
        number = self.arrived + rank
        return Call(
            call_id=f"call-{number}",
            query_id=f"query-{number // 3}",
            workflow="w" if kind % 2 else "",
            stage=f"stage-{kind % 3}",
            model="m" if kind % 5 else "other",
            pools=frozenset({"p0"}) if kind == 4 else None,
            prompt_tokens=prompt,
            max_tokens=100 + 10 * kind,
            samples=samples,
            prefix=tuple(
                PrefixBlock(key=f"{kind % 2}/{prompt // 4}/{depth}", tokens=prompt // 4)
                for depth in range(kind % 3)
            ),
            query_arrival=self.now,
            deadline=None if deadline == 0 else self.now + (deadline - 40) / 8 * self.unit,
            budget_seconds=None if budget == 0 else budget / 8 * self.unit,
            round=kind % 4,
        )

    def _step_finish(self, index: int, output: int) -> None:
        running = [call_id for call_id, entry in self.live.items() if entry.running]
        if running:
            self._finish(running[index % len(running)], output=output)

    def _finish(self, call_id: str, *, output: int) -> None:
        call = self.live[call_id].call
        first = None if output % 2 else 0.25 * self.unit
        usage = Usage(prompt_tokens=call.prompt_tokens, output_tokens=output, first_token_seconds=first)
        self._tell(self.kernel.finished, self.now, call_id, usage)

    def _step_fail(self, index: int, retryable: int) -> None:
        running = [call_id for call_id, entry in self.live.items() if entry.running]
        if running:
            call_id = running[index % len(running)]
            entry = self.live[call_id]
            entry.running, entry.instance_id = False, None
            self._tell(self.kernel.failed, self.now, call_id, reason="broken", retryable=bool(retryable))

    def _step_cancel(self, index: int) -> None:
        if self.live:
            self._tell(self.kernel.cancel, self.now, [*self.live][index % len(self.live)])

    def _step_instance(self, index: int, state: int, slots: int, kv: int, speed: int) -> None:
        name = NAMES[index]
        new = [*InstanceState][state]
        known = next((key for key in self.instances if key.startswith(name)), None)
        if known is None:
            self.generations += 1
        instance_id = known or f"{name}{self.generations}"
        factor = SPEEDS[speed] * self.unit
        instance = Instance(
            instance_id=instance_id,
            pool=f"p{index % 2}",
            gpu_type="GPU",
            models=frozenset({"m"}) if index % 3 else frozenset({"m", "other"}),
            profile=Profile(
                t0=0.021 * factor,
                t1=0.0007 * factor,
                t2=3e-7 * factor,
                c1=0.00013 * factor,
                c2=2e-9 * factor,
                kv_tokens=kv,
                slots=slots,
            ),
            state=new,
            max_context=1500 if index == 3 else None,
            prefix_caching=index != 2,
            takes_priority=bool(index % 2),
        )
        if new is InstanceState.GONE:
            self.instances.pop(instance_id, None)
        else:
            self.instances[instance_id] = instance
        self.changing = True
        self._tell(self.kernel.instance, self.now, instance)
        self.changing = False
        self._look_up()

    def _step_load(self, index: int, sequences: int) -> None:
        if self.instances:
            instance_id = [*self.instances][index % len(self.instances)]
            self._tell(self.kernel.load, self.now, instance_id, sequences)

    def _step_parameters(self, alpha: int, workflow: int) -> None:
        declared = {parameter.name for parameter in self.kernel.policy.declared}
        values = {"alpha": alpha / 10} if "alpha" in declared else {}
        self._tell(self.kernel.parameters, self.now, Parameters(**values), workflow="w" if workflow else "")

    def _step_wait(self, eighths: int) -> None:
        self.now += eighths / 8 * self.unit
        self._tell(self.kernel.wake, self.now)

    # The ledger

    def _tell(self, tell: Callable[..., Sequence[Decision]], *arguments: Any, **named: Any) -> None:
        for decision in tell(*arguments, **named):
            self._note(decision)
            self.decisions.append(decision)

    def _note(self, decision: Decision) -> None:
        assert decision.call_id not in self.ends, f"{decision} after {self.ends[decision.call_id]}"
        entry = self.live[decision.call_id]
        match decision:
            case Place():
                assert not entry.running
                assert self.instances[decision.instance_id].state is InstanceState.READY
                entry.instance_id = decision.instance_id
                entry.output_tokens = decision.output_tokens
                entry.urgency, entry.urgency_at = decision.urgency, self.now
            case Send():
                assert not entry.running
                assert entry.instance_id == decision.instance_id
                self._check_turn(entry, decision)
                assert self._fits(entry), f"{decision} is too much"
                entry.running = True
                entry.attempt += 1
                assert decision.attempt == entry.attempt <= self.kernel.max_attempts
            case Abort():
                assert entry.running
                assert entry.instance_id == decision.instance_id
                entry.running, entry.instance_id = False, None
            case End():
                self.ends[decision.call_id] = decision
                del self.live[decision.call_id]

    def _check_turn(self, entry: Entry, send: Send) -> None:
        waiting = self._waiting(send.instance_id)
        if self.changing:
            return
        if self.kernel.policy.queue == "Urgency":
            most = max(self._urgency(other) for other in waiting)
            assert self._urgency(entry) >= most - 1e-6 * self.unit
            assert abs(send.urgency - self._urgency(entry)) < 1e-6 * self.unit
        elif self.kernel.policy.queue == "FCFS":
            assert entry.order == min(other.order for other in waiting)

    def _urgency(self, entry: Entry) -> float:
        return entry.urgency + (self.now - entry.urgency_at)

    def _look_up(self) -> None:
        # A changed instance may park what waits for it, or change its urgency, without a decision.
        for call in self.kernel.view().parked:
            self.live[call.call_id].instance_id = None
        for shown in self.kernel.view().instances:
            for waiting in shown.queue:
                entry = self.live[waiting.call.call_id]
                entry.urgency, entry.urgency_at = waiting.urgency, self.now

    def _waiting(self, instance_id: str) -> list[Entry]:
        here = [entry for entry in self.live.values() if entry.instance_id == instance_id]
        return [entry for entry in here if not entry.running]

    def _running(self, instance_id: str) -> list[Entry]:
        return [e for e in self.live.values() if e.instance_id == instance_id and e.running]

    def _fits(self, entry: Entry) -> bool:
        assert entry.instance_id is not None
        running = self._running(entry.instance_id)
        if not running:
            return True
        instance = self.instances[entry.instance_id]
        together = [*running, entry]
        slots = sum(each.call.samples for each in together)
        return (
            slots <= instance.profile.slots and _kv_tokens(instance, together) <= instance.profile.kv_tokens
        )

    def check(self) -> None:
        """Compare the kernel's view with the ledger."""
        view = self.kernel.view()
        assert {shown.instance for shown in view.instances} == {*self.instances.values()}
        for shown in view.instances:
            name = shown.instance.instance_id
            waiting, running = self._waiting(name), self._running(name)
            assert {w.call.call_id for w in shown.queue} == {e.call.call_id for e in waiting}
            assert {r.call.call_id for r in shown.running} == {e.call.call_id for e in running}
            if waiting:
                assert shown.instance.state is InstanceState.READY
                foreign = shown.foreign_running
                first = self.live[shown.queue[0].call.call_id]
                taken = sum(e.call.samples for e in [*running, first]) + foreign
                full = taken > shown.instance.profile.slots or not self._fits(first)
                assert running, f"{name} runs nothing while {first.call.call_id} waits for it"
                if not self.moving:
                    assert full, f"{first.call.call_id} could start on {name}"
            if not self.moving:
                keys = [(w.key, self.live[w.call.call_id].order) for w in shown.queue]
                assert keys == sorted(keys)
            if not running:
                assert shown.free_kv_tokens == shown.instance.profile.kv_tokens
        for load in self.kernel._fleet:
            here = [*self._waiting(load.instance_id), *self._running(load.instance_id)]
            longest = sum(entry.call.prompt_tokens for entry in here)
            assert 0 <= load.uncached_tokens <= longest
            if not self._waiting(load.instance_id):
                assert load.kv_waiting == 0
        parked = {call.call_id for call in view.parked}
        assert parked == {call_id for call_id, e in self.live.items() if e.instance_id is None}
        for call in view.parked:
            assert not any(
                i.state is InstanceState.READY and _serves(i, call) for i in self.instances.values()
            )
        assert self.arrived == len(self.live) + len(self.ends)


def _serves(instance: Instance, call: Call) -> bool:
    return (
        call.model in instance.models
        and (call.pools is None or instance.pool in call.pools)
        and (instance.max_context is None or call.prompt_tokens < instance.max_context)
    )


def _kv_tokens(instance: Instance, entries: Sequence[Entry]) -> int:
    blocks: dict[str, int] = {}
    tokens = 0
    for entry in entries:
        call = entry.call
        shared = call.prefix if instance.prefix_caching else ()
        blocks.update({block.key: block.tokens for block in shared})
        tokens += call.prompt_tokens - sum(block.tokens for block in shared)
        tokens += ceil(entry.output_tokens * call.samples)
    return tokens + sum(blocks.values())
