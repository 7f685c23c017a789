"""How long the calls of an event log took, against what a profile says of them.

A call decodes among all that run on its instance, and each prompt that is prefilled meanwhile stops it. So its seconds are
compared with the prefill of all prompts that were sent there in its time, its own among them, and with a step for each token
that it wrote, in the mean batch and context of its time. What the engine found in its prefix cache is what it reports; where
it reports nothing, blocks that were sent there before count as found.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from hexflow_scheduler import Call, Profile, Usage
from hexflow_scheduler.decision import End, Send
from hexflow_scheduler.eventlog import Record


@dataclass(frozen=True, slots=True)
class _Done:
    """Hold an answered call. Tokens are those of one sample."""

    sent: float
    finished: float
    samples: int
    prompt: int
    cached: int
    output: float


class CallTimes:
    """Collect the answered calls of each instance from a log's records, in order."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._sent: dict[str, tuple[str, float]] = {}
        self._seen: dict[str, set[str]] = {}
        self._done: dict[str, list[_Done]] = {}

    def note(self, record: Record) -> None:
        """Take the next record."""
        if record.input == "arrive":
            self._calls.update((call.call_id, call) for call in record.arguments["calls"])
        elif record.input == "finished":
            self._finish(record.now, record.arguments["call_id"], record.arguments["usage"])
        for decision in record.decisions:
            if isinstance(decision, Send):
                self._sent[decision.call_id] = (decision.instance_id, record.now)
            elif isinstance(decision, End):
                self._calls.pop(decision.call_id, None)
                self._sent.pop(decision.call_id, None)

    def ratios(self, instance_id: str, profile: Profile) -> list[float]:
        """Return seconds over predicted seconds of each answered call of an instance."""
        done = sorted(self._done.get(instance_id, ()), key=lambda each: each.sent)
        sends = [each.sent for each in done]
        prefills = [0.0]
        for each in done:
            prefills.append(prefills[-1] + profile.prefill_seconds(each.prompt, cached_tokens=each.cached))
        busy = _Busy(done)
        found = []
        for each in done:
            elapsed = each.finished - each.sent
            batch, context = busy.mean(each.sent, each.finished)
            step = profile.t0 + profile.t1 * batch + profile.t2 * context
            there = prefills[bisect_right(sends, each.finished)] - prefills[bisect_left(sends, each.sent)]
            found.append(elapsed / (there + step * (each.output + 0.5)))
        return found

    def _finish(self, now: float, call_id: str, usage: Usage) -> None:
        call, (instance_id, sent) = self._calls.get(call_id), self._sent.get(call_id, ("", now))
        if call is None or now <= sent:
            return
        seen = self._seen.setdefault(instance_id, set())
        known = sum(block.tokens for block in call.prefix if block.key in seen)
        seen.update(block.key for block in call.prefix)
        prompt = max(1, usage.prompt_tokens)
        self._done.setdefault(instance_id, []).append(
            _Done(
                sent=sent,
                finished=now,
                samples=call.samples,
                prompt=prompt,
                cached=min(prompt - 1, known if usage.cached_tokens is None else usage.cached_tokens),
                output=usage.output_tokens / call.samples,
            )
        )


class _Busy:
    """Know how many sequences ran on an instance at a time, and of how much context together."""

    def __init__(self, done: Sequence[_Done]) -> None:
        changes = sorted(
            (at, sign * each.samples, sign * each.samples * (each.prompt + each.output / 2))
            for each in done
            for at, sign in ((each.sent, 1), (each.finished, -1))
        )
        self._times = [at for at, _, _ in changes]
        self._levels = [(0.0, 0.0)]
        self._sums = [(0.0, 0.0)]
        before = self._times[0] if changes else 0.0
        for at, sequences, context in changes:
            (n, c), (ns, cs) = self._levels[-1], self._sums[-1]
            self._sums.append((ns + n * (at - before), cs + c * (at - before)))
            self._levels.append((n + sequences, c + context))
            before = at

    def mean(self, begin: float, end: float) -> tuple[float, float]:
        """Return the mean of both from one instant to another."""
        (n0, c0), (n1, c1) = self._until(begin), self._until(end)
        return (n1 - n0) / (end - begin), (c1 - c0) / (end - begin)

    def _until(self, at: float) -> tuple[float, float]:
        place = bisect_right(self._times, at)
        (n, c), (ns, cs) = self._levels[place], self._sums[place]
        since = at - self._times[place - 1] if place else 0.0
        return ns + n * since, cs + c * since
