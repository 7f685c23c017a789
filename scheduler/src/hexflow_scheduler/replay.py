"""Replaying an event log: the same inputs to a fresh kernel must give the same decisions."""

from collections.abc import Iterable
from dataclasses import dataclass

from hexflow_scheduler.decision import Decision
from hexflow_scheduler.errors import InvalidRecord
from hexflow_scheduler.eventlog import START, Record, apply, kernel_of
from hexflow_scheduler.kernel import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Show the first input after which a replay decided otherwise."""

    record: Record
    """What was recorded."""
    decided: tuple[Decision, ...]
    """What the replay decided instead."""

    def __str__(self) -> str:
        pairs = zip(self.record.decisions, self.decided, strict=False)
        place = next((i for i, (old, new) in enumerate(pairs) if old != new), None)
        if place is None:
            place = min(len(self.record.decisions), len(self.decided))
        old, new = self.record.decisions[place:][:1], self.decided[place:][:1]
        return (
            f"record {self.record.sequence} ({self.record.input} at {self.record.now}), decision {place}: "
            f"recorded {old[0] if old else 'nothing'}, replayed {new[0] if new else 'nothing'}"
        )


class Replay:
    """Feed records to a fresh kernel, one by one."""

    kernel: Kernel

    def __init__(self, start: Record) -> None:
        self._begin(start)

    def feed(self, record: Record) -> Difference | None:
        """Give the kernel a record's input; return the difference if it decides otherwise.

        Another start is where a router began anew, and so does the replay. Raises InvalidRecord for a gap
        in the log or an input that cannot be.
        """
        if record.input == START:
            self._begin(record)
            return None
        if record.sequence != self._next:
            raise InvalidRecord(
                f"record {record.sequence} follows where {self._next} should; lines are missing"
            )
        self._next += 1
        decided = apply(self.kernel, record)
        return None if decided == record.decisions else Difference(record=record, decided=decided)

    def _begin(self, start: Record) -> None:
        self.kernel = kernel_of(start)
        self._next = start.sequence + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Report a replay."""

    kernel: Kernel
    """As the last input left it."""
    inputs: int
    decisions: int
    difference: Difference | None
    """Where it stopped; None if the whole log came out the same."""


def replay(records: Iterable[Record]) -> Replayed:
    """Replay a log up to its end or the first difference. Raises InvalidRecord."""
    stream = iter(records)
    start = next(stream, None)
    if start is None:
        raise InvalidRecord("an event log has at least one record; this one is empty")
    replaying = Replay(start)
    inputs = decisions = 0
    difference = None
    for record in stream:
        inputs += record.input != START
        decisions += len(record.decisions)
        difference = replaying.feed(record)
        if difference is not None:
            break
    return Replayed(kernel=replaying.kernel, inputs=inputs, decisions=decisions, difference=difference)
