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
    """Replay a log up to its end or the first difference.

    Another start is where a router began anew, and so does the replay. Raises InvalidRecord for a log that
    is empty, lacks its head, has a gap, or holds an input that cannot be.
    """
    kernel: Kernel | None = None
    expected = inputs = decisions = 0
    for record in records:
        if kernel is None or record.input == START:
            kernel, expected = kernel_of(record), record.sequence + 1
            continue
        if record.sequence != expected:
            raise InvalidRecord(
                f"record {record.sequence} follows where {expected} should; lines are missing"
            )
        expected += 1
        inputs += 1
        decisions += len(record.decisions)
        decided = apply(kernel, record)
        if decided != record.decisions:
            difference = Difference(record=record, decided=decided)
            return Replayed(kernel=kernel, inputs=inputs, decisions=decisions, difference=difference)
    if kernel is None:
        raise InvalidRecord("an event log has at least one record; this one is empty")
    return Replayed(kernel=kernel, inputs=inputs, decisions=decisions, difference=None)
