"""The event log: everything the kernel was told and decided, one JSON object a line.

A log starts with a ``start`` record (policy, parameters, what was learned before) and goes on with one
record for each input and the decisions it led to, so that it can be replayed without the router. It
holds counts, names, instants and hashes; never a question, a prompt or a statement. This module makes and
reads lines; where they are kept is the caller's.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hexflow_scheduler.call import Call, Usage
from hexflow_scheduler.decision import Decision
from hexflow_scheduler.errors import InvalidRecord, SchedulerError
from hexflow_scheduler.estimate import Estimates
from hexflow_scheduler.instance import Instance
from hexflow_scheduler.kernel import Kernel
from hexflow_scheduler.parameter import Parameters
from hexflow_scheduler.plain import decision_from_plain, decision_to_plain, from_plain, to_plain
from hexflow_scheduler.policy import Policy
from hexflow_scheduler.relief import Relief

VERSION = 2
"""Version of the records; another one is refused. 2: the ends of queries are told (``query_ended``)."""

START = "start"
"""Name of the first record of a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Hold one input of a kernel and what it decided."""

    sequence: int
    """0 for the start of the log, then one more for each input."""
    now: float
    """The instant that was given with the input."""
    input: str
    """Name of the kernel's method, or ``start``."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The method's arguments by name, without ``now``."""
    decisions: tuple[Decision, ...] = ()


def encode(record: Record) -> str:
    """Return a record as one line of JSON, without the line's end."""
    line = {
        "v": VERSION,
        "n": record.sequence,
        "t": record.now,
        "input": record.input,
        "with": {name: to_plain(value) for name, value in record.arguments.items()},
        "decisions": [decision_to_plain(decision) for decision in record.decisions],
    }
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decode(line: str) -> Record:
    """Return the record of a line; raises InvalidRecord with what is wrong."""
    try:
        data = json.loads(line)
        if data["v"] != VERSION:
            raise InvalidRecord(
                f"a record of version {data['v']!r}; this program reads version {VERSION}: "
                "replay the log with the release that wrote it, or begin a new one"
            )
        read = _ARGUMENTS.get(data["input"])
        if read is None:
            raise InvalidRecord(f"no input is called {data['input']!r}; there are: {', '.join(_ARGUMENTS)}")
        return Record(
            sequence=data["n"],
            now=data["t"],
            input=data["input"],
            arguments=read(data["with"]),
            decisions=tuple(decision_from_plain(decision) for decision in data["decisions"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidRecord(f"no record of an event log ({error!r}): {line[:80]!r}") from error


def start_record(kernel: Kernel) -> Record:
    """Return the first record of the log of a kernel that was told nothing yet."""
    arguments = {
        "dispatch": kernel.policy.dispatch,
        "queue": kernel.policy.queue,
        "parameters": dict(kernel.policy.values()),
        "park_seconds": kernel.policy.park_seconds,
        "relief": {"demote": kernel.policy.relief.demote, "drop": kernel.policy.relief.drop},
        "max_attempts": kernel.max_attempts,
        "estimates": kernel.estimates.to_data(),
    }
    return Record(sequence=0, now=0.0, input=START, arguments=arguments)


def kernel_of(start: Record) -> Kernel:
    """Return the kernel that a log started with, told nothing yet; raises InvalidRecord where there is none such."""
    if start.input != START:
        raise InvalidRecord(f"a log begins with {START!r}, not with {start.input!r}; its head is missing")
    given = start.arguments
    try:
        policy = Policy(
            dispatch=given["dispatch"],
            queue=given["queue"],
            parameters=Parameters(**given["parameters"]),
            park_seconds=given["park_seconds"],
            relief=Relief(**given["relief"]),
        )
        return Kernel(policy, Estimates.from_data(given["estimates"]), given["max_attempts"])
    except SchedulerError as error:
        raise InvalidRecord(f"no kernel here could start so: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidRecord(f"a start record without what a kernel needs ({error!r})") from error


def apply(kernel: Kernel, record: Record) -> tuple[Decision, ...]:
    """Give a record's input to a kernel and return what it decides; raises InvalidRecord where it takes none such."""
    try:
        decisions: tuple[Decision, ...] = getattr(kernel, record.input)(record.now, **record.arguments)
    except SchedulerError as error:
        raise InvalidRecord(f"record {record.sequence} cannot follow those before it: {error}") from error
    except TypeError as error:  # JSON knows other types than the fields do
        raise InvalidRecord(f"record {record.sequence} holds a value of another type ({error})") from error
    return decisions


_ARGUMENTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    START: dict,
    "instance": lambda data: {"instance": from_plain(Instance, data["instance"])},
    "arrive": lambda data: {"calls": tuple(from_plain(Call, call) for call in data["calls"])},
    "finished": lambda data: {"call_id": data["call_id"], "usage": from_plain(Usage, data["usage"])},
    "failed": lambda data: {name: data[name] for name in ("call_id", "reason", "retryable")},
    "cancel": lambda data: {"call_id": data["call_id"]},
    "query_ended": lambda data: {name: data[name] for name in ("query_id", "answered")},
    "wake": lambda _: {},
    "load": lambda data: {name: data[name] for name in ("instance_id", "foreign_running")},
    "parameters": lambda data: {
        "parameters": Parameters(**data["parameters"]),
        "workflow": data["workflow"],
    },
}
