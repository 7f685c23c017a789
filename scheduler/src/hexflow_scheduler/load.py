"""What an instance is busy with: the calls that run there, those that wait for it, and its speed.

Everything a dispatch rule asks for takes constant time in the number of waiting calls, and at most a
pass over the running ones, of which there are never more than slots.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from types import MappingProxyType
from typing import Protocol

from hexflow_scheduler.active import ActiveCall, Phase
from hexflow_scheduler.call import PrefixBlock
from hexflow_scheduler.cost import Speed
from hexflow_scheduler.instance import Instance, InstanceState
from hexflow_scheduler.prefix import BlockCounts, PrefixMirror
from hexflow_scheduler.queue import Queue


class Follower(Protocol):
    """Be told of every change to an instance's load, right after it: what a rule's own books are kept by."""

    def entered(self, active: ActiveCall, /) -> None:
        """Take note that a call was put in the queue."""
        ...

    def left(self, active: ActiveCall, /) -> None:
        """Take note that a waiting call was taken out, and does not run here."""
        ...

    def started(self, now: float, active: ActiveCall, /) -> None:
        """Take note that a waiting call runs."""
        ...

    def stopped(self, now: float, active: ActiveCall, /) -> None:
        """Take note that a running call does not run any more."""
        ...


class InstanceLoad:
    """Keep the load of one instance. The fleet changes it; rules read it."""

    __slots__ = (
        "_context",
        "_context_seconds",
        "_held",
        "_mirror",
        "_occupied",
        "_prefill_sent",
        "_prefilled_at",
        "_running",
        "_sampled_at",
        "_sequence_seconds",
        "_waiting_prefill",
        "_waiting_seconds",
        "follower",
        "foreign",
        "instance",
        "kv_taken",
        "kv_waiting",
        "last_put",
        "queue",
        "slots_taken",
        "slots_waiting",
        "speed",
        "uncached_tokens",
    )

    def __init__(self, instance: Instance, speed: Speed, queue: Queue) -> None:
        self.instance = instance
        self.speed = speed
        self.queue = queue
        self.slots_taken = 0
        """Sequences that run."""
        self.slots_waiting = 0
        """Sequences that wait."""
        self.kv_taken = 0
        """Tokens of KV cache that the running calls are expected to hold at their ends."""
        self.kv_waiting = 0
        """Tokens of KV cache that the waiting calls are expected to hold at theirs, blocks they share left out."""
        self.uncached_tokens = 0
        """Prompt tokens of all that runs or waits here which were not expected in its prefix cache."""
        self.foreign = 0
        """Sequences of others that the engine reports."""
        self.follower: Follower | None = None
        """Who keeps books of this instance; a dispatch rule may set it."""
        self.last_put = -1
        """Turn at which a call was last put here; -1 for never."""
        self._context = 0.0
        """Tokens of context that what runs attends to, on average over its life."""
        self._sequence_seconds = self._context_seconds = 0.0
        """Integrals of sequences and of context over time."""
        self._prefill_sent = 0.0
        """Work of prefill of all that was ever sent: seconds by the profile, whatever its factor then was."""
        self._sampled_at = 0.0
        self._running: dict[str, ActiveCall] = {}
        self._waiting_seconds = 0.0
        self._waiting_prefill = 0.0
        self._prefilled_at = 0.0
        """When the engine is expected to have prefilled all that was sent, one prompt after the other."""
        self._held = BlockCounts()
        """Prefix blocks of all that runs or waits here."""
        self._occupied = BlockCounts()
        """Prefix blocks of what runs, each in the KV cache once."""
        self._mirror = PrefixMirror()

    @property
    def instance_id(self) -> str:
        """Id of the instance."""
        return self.instance.instance_id

    @property
    def ready(self) -> bool:
        """Whether it takes new calls."""
        return self.instance.state is InstanceState.READY

    @property
    def running(self) -> Mapping[str, ActiveCall]:
        """The calls that run here, by id, in the order they were sent."""
        return MappingProxyType(self._running)

    @property
    def outstanding(self) -> int:
        """Sequences that run or wait here, others' included."""
        return self.slots_taken + self.slots_waiting + self.foreign

    @property
    def free_slots(self) -> int:
        """Sequences that it could take now."""
        return max(0, self.instance.profile.slots - self.slots_taken - self.foreign)

    @property
    def remembered_tokens(self) -> int:
        """Prompt tokens of ended calls that its prefix cache is expected to hold."""
        return self._mirror.tokens

    @property
    def free_kv_tokens(self) -> int:
        """Tokens of KV cache that nobody is expected to need."""
        return max(0, self.instance.profile.kv_tokens - self.kv_taken)

    def can_start(self, active: ActiveCall) -> bool:
        """Say whether the engine has a free slot and KV for the call now.

        With nothing of ours running the answer is yes, so that neither a call larger than the cache nor
        a stale count of others' calls can hold back for ever.
        """
        if not self._running:
            return True
        kv_tokens = active.kv_tokens + self._occupied.fresh_tokens(active.blocks)
        return active.call.samples <= self.free_slots and kv_tokens <= self.free_kv_tokens

    def cached_tokens(self, active: ActiveCall) -> int:
        """Return how many tokens of the call's prompt its prefix cache is expected to hold."""
        if not self.instance.prefix_caching:
            return 0
        # An engine computes at least the last token of a prompt.
        hit = self._mirror.hit_tokens(active.call.prefix, self._held)
        return min(hit, max(0, active.call.prompt_tokens - 1))

    def alone_seconds(self, active: ActiveCall) -> float:
        """Return t_comp: the seconds of the call here if nothing else ran.

        It depends on the call and the instance alone, so that equal calls are equally urgent.
        """
        call = active.call
        return self.speed.call_seconds(
            call.prompt_tokens,
            active.output_tokens,
            batch=call.samples,
            cached_tokens=self.cached_tokens(active),
        )

    def call_seconds(self, active: ActiveCall) -> float:
        """Return the seconds of the call here in the batch it would meet, waiting left out."""
        call = active.call
        batch = max(call.samples, min(self.instance.profile.slots, self.outstanding + call.samples))
        return self.speed.call_seconds(
            call.prompt_tokens,
            active.output_tokens,
            batch=batch,
            cached_tokens=self.cached_tokens(active),
        )

    def prefill_seconds(self, active: ActiveCall) -> float:
        """Return the seconds of the call's prefill here."""
        return self.speed.prefill_seconds(active.call.prompt_tokens, cached_tokens=self.cached_tokens(active))

    def prefill_backlog(self, now: float) -> float:
        """Return the seconds of prefill that are ahead of a call that comes now."""
        return max(0.0, self._prefilled_at - now) + self._waiting_prefill

    def start_seconds(self, now: float, active: ActiveCall) -> float:
        """Return the seconds until the engine is expected to have a slot and KV for a call that comes now.

        The share of its slots, or of its KV, that is short, times the mean of what is left of all calls here.
        """
        call, profile = active.call, self.instance.profile
        slots_short = self.slots_waiting + call.samples - self.free_slots
        kv_short = self.kv_waiting + own_tokens(active, call.prefix) - self.free_kv_tokens
        calls = len(self._running) + len(self.queue)
        if calls == 0 or (slots_short <= 0 and kv_short <= 0):
            return 0.0
        quantum = self.speed.quantum
        left = sum(max(quantum, running.predicted_finish - now) for running in self._running.values())
        short = max(slots_short / profile.slots, kv_short / profile.kv_tokens)
        return short * (left + self._waiting_seconds) / calls

    def finish_seconds(self, now: float, active: ActiveCall) -> float:
        """Return the seconds until a call that comes now is expected to be done here."""
        return self.start_seconds(now, active) + self.prefill_backlog(now) + self.call_seconds(active)

    def queue_seconds(self, now: float) -> float:
        """Return t_queue: the seconds of all calls that wait here, and what is left of those that run.

        A running call that has outlived its prediction counts as one quantum. Each sequence of others
        counts as half of what ours take on average, its length being unknown.
        """
        quantum = self.speed.quantum
        ours = self._waiting_seconds
        for active in self._running.values():
            left = active.predicted_finish - now
            ours += left if left > quantum else quantum
        if self.foreign:
            mean = ours / max(1, len(self._running) + len(self.queue))
            ours += self.foreign * max(quantum, mean / 2)
        return ours

    # What follows is for the fleet.

    def note_foreign(self, now: float, sequences: int) -> None:
        """Take a new count of sequences that the engine runs for others."""
        self._sample(now)
        self.foreign = sequences

    def price(self, active: ActiveCall) -> None:
        """Predict what the call takes here: all that ``enqueue`` and queue rules read."""
        call, speed, output = active.call, self.speed, active.output_tokens
        cached, samples = self.cached_tokens(active), call.samples
        batch = max(samples, min(self.instance.profile.slots, self.outstanding + samples))
        prefill = speed.prefill_seconds(call.prompt_tokens, cached_tokens=cached)
        alone = speed.decode_seconds(call.prompt_tokens, output, batch=samples)
        active.cached_tokens = cached
        active.prefill_work = prefill / speed.prefill
        active.prefill_seconds = prefill
        active.alone_seconds = prefill + alone
        if batch != samples:
            alone = speed.decode_seconds(call.prompt_tokens, output, batch=batch)
        active.predicted_seconds = prefill + alone

    def enqueue(self, active: ActiveCall) -> None:
        """Put a call that was priced in the queue at its key."""
        active.instance_id = self.instance_id
        active.phase = Phase.WAITING
        active.blocks = active.call.prefix if self.instance.prefix_caching else ()
        active.kv_tokens = own_tokens(active, active.blocks)
        self._held.hold(active.blocks)
        self.queue.push(active)
        self.slots_waiting += active.call.samples
        self._waiting_seconds += active.predicted_seconds
        self._waiting_prefill += active.prefill_seconds
        self.kv_waiting += active.kv_tokens
        self.uncached_tokens += active.call.prompt_tokens - active.cached_tokens
        if self.follower is not None:
            self.follower.entered(active)

    def dequeue(self, active: ActiveCall) -> None:
        """Take a waiting call out of the queue."""
        self._unqueue(active)
        active.instance_id = None
        active.phase = Phase.PARKED
        if self.follower is not None:
            self.follower.left(active)

    def _unqueue(self, active: ActiveCall) -> None:
        self.queue.remove(active)
        self._held.release(active.blocks)
        self.slots_waiting -= active.call.samples
        # Adding and subtracting leaves dust; an empty queue is a chance to sweep it.
        self._waiting_seconds = self._waiting_seconds - active.predicted_seconds if len(self.queue) else 0.0
        self._waiting_prefill = self._waiting_prefill - active.prefill_seconds if len(self.queue) else 0.0
        self.kv_waiting -= active.kv_tokens
        self.uncached_tokens -= active.call.prompt_tokens - active.cached_tokens

    def start(self, now: float, active: ActiveCall) -> None:
        """Let a waiting call run."""
        # Its own blocks count as held only now: what it found here is what others brought.
        self._unqueue(active)
        active.cached_tokens = self.cached_tokens(active)
        self._held.hold(active.blocks)
        active.reading = self.reading(now)
        active.phase = Phase.RUNNING
        active.sent = now
        active.predicted_finish = now + active.predicted_seconds
        active.attempt += 1
        self._prefill_sent += active.prefill_work
        self._context += context_tokens(active)
        self._prefilled_at = max(self._prefilled_at, now) + active.prefill_seconds
        self.uncached_tokens += active.call.prompt_tokens - active.cached_tokens
        self._running[active.call.call_id] = active
        self.slots_taken += active.call.samples
        self.kv_taken += active.kv_tokens + self._occupied.hold(active.blocks)
        if self.follower is not None:
            self.follower.started(now, active)

    def stop(self, now: float, active: ActiveCall) -> None:
        """Take a running call off the instance, however it ended."""
        self._sample(now)
        del self._running[active.call.call_id]
        self.slots_taken -= active.call.samples
        self._context = self._context - context_tokens(active) if self._running else 0.0
        self.kv_taken -= active.kv_tokens + self._occupied.release(active.blocks)
        self._held.release(active.blocks)
        self.uncached_tokens -= active.call.prompt_tokens - active.cached_tokens
        self._mirror.touch(active.blocks, capacity=self.instance.profile.kv_tokens)
        active.instance_id = None
        active.phase = Phase.PARKED
        if self.follower is not None:
            self.follower.stopped(now, active)

    def reading(self, now: float) -> tuple[float, float, float]:
        """Read the meters: sequence-seconds, token-seconds of context, and work of prefill done.

        Their growth over a call's life tells what batch it ran in and how long others' prompts stopped it. Work is in
        seconds by the profile, so that what is learned from many calls of one moment does not count its own effect.
        """
        self._sample(now)
        prefilled = self._prefill_sent - max(0.0, self._prefilled_at - now) / self.speed.prefill
        return self._sequence_seconds, self._context_seconds, prefilled

    def correct_prefill(self, work: float) -> None:
        """Take note that a call's prefill was so much more work than was expected: late, but right on average."""
        self._prefill_sent += work

    def learn_speed(self, now: float, speed: Speed) -> None:
        """Take over what was learned about the instance; what is left to prefill takes as much longer."""
        left = self._prefilled_at - now
        if left > 0:
            self._prefilled_at = now + left * speed.prefill / self.speed.prefill
        self.speed = speed

    def _sample(self, now: float) -> None:
        elapsed = now - self._sampled_at
        self._sequence_seconds += (self.slots_taken + self.foreign) * elapsed
        self._context_seconds += self._context * elapsed
        self._sampled_at = now


def context_tokens(active: ActiveCall) -> float:
    """Return the tokens of context that a call attends to on average, all its samples together."""
    return active.call.samples * (active.call.prompt_tokens + active.output_tokens / 2)


def own_tokens(active: ActiveCall, blocks: Sequence[PrefixBlock]) -> int:
    """Return the tokens of KV cache that a call is expected to hold at its end, ``blocks`` left out."""
    shared = sum(block.tokens for block in blocks)
    own = max(0, active.call.prompt_tokens - shared)
    return own + ceil(active.output_tokens * active.call.samples)
