"""What the tuner in a cluster reads out of an event log besides the queries: who served, and how many were in time.

A whole log is replayed (``speedfit``), which gives the learned speeds, too. One that only goes on from somewhere cannot
be: then the instances and parameters that it names are taken as they are.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hexflow_scheduler import Estimates, Instance, InstanceState, InvalidRecord, Parameters, Policy
from hexflow_scheduler.eventlog import START, decode, kernel_of
from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.fleet import SimulatedInstance, options_of
from hexflow_simulator.lines import text_lines
from hexflow_simulator.speedfit import read_observed
from hexflow_simulator.tuning import SpeedFit


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Hold who served and by which rules."""

    fleet: tuple[SimulatedInstance, ...]
    """Instances that took calls at the end."""
    policy: Policy
    parameters: Mapping[str, Parameters]
    """In force at the end, of single workflows."""
    ended: float
    """Instant of the last record."""
    estimates: Estimates | None = None
    """What the router had learned; None where nobody knows."""
    speeds: tuple[SpeedFit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeliness:
    """Hold when queries arrived and whether each was answered by its deadline."""

    ended: tuple[tuple[float, bool], ...]

    @property
    def queries(self) -> int:
        """How many."""
        return len(self.ended)

    @property
    def share(self) -> float:
        """The share that was in time; 1 of none."""
        return sum(met for _, met in self.ended) / len(self.ended) if self.ended else 1.0

    def between(self, first: float, last: float) -> "Timeliness":
        """Return those that arrived in a span of time."""
        return Timeliness(ended=tuple(each for each in self.ended if first <= each[0] <= last))


def look(path: Path) -> Seen:
    """Return who served. Raises InvalidTrace where the log cannot be read at all."""
    try:
        found = read_observed(path)
    except InvalidTrace:
        return _as_named(path)
    return Seen(
        fleet=found.fleet,
        policy=found.policy,
        parameters=found.parameters,
        ended=found.ended,
        estimates=found.estimates,
        speeds=found.speeds,
    )


def timeliness(path: Path, workflow: str) -> Timeliness:
    """Return how the queries of a workflow went; those without a deadline are left out."""
    known: dict[str, tuple[float, float]] = {}
    ended: list[tuple[float, bool]] = []
    for _, line in text_lines(path):
        if '"input":"arrive"' in line[:120]:
            for call in json.loads(line)["with"]["calls"]:
                if call.get("workflow") == workflow and call.get("deadline") is not None:
                    known.setdefault(call["queryId"], (call["queryArrival"], call["deadline"]))
        elif '"input":"query_ended"' in line[:120]:
            record = json.loads(line)
            given = record["with"]
            if (query := known.pop(given["query_id"], None)) is not None:
                arrival, deadline = query
                ended.append((arrival, bool(given["answered"]) and record["t"] <= deadline))
    return Timeliness(ended=tuple(ended))


def _as_named(path: Path) -> Seen:
    policy: Policy | None = None
    instances: dict[str, Instance] = {}
    parameters: dict[str, Parameters] = {}
    ended = 0.0
    for number, line in text_lines(path):
        try:
            record = decode(line)
            if record.input == START:
                policy = kernel_of(record).policy
                instances, parameters = {}, {}
        except (InvalidRecord, RecursionError) as error:
            raise InvalidTrace(
                Where(str(path), number), str(error), "give an event log of this release"
            ) from error
        ended = max(ended, record.now)
        if record.input == "instance":
            instance: Instance = record.arguments["instance"]
            instances[instance.instance_id] = instance
        elif record.input == "parameters":
            parameters[record.arguments["workflow"]] = record.arguments["parameters"]
    if policy is None:
        raise InvalidTrace(Where(str(path)), "no start record", "give an event log from its beginning")
    ready = [each for each in instances.values() if each.state is InstanceState.READY]
    return Seen(fleet=tuple(map(_simulated, ready)), policy=policy, parameters=parameters, ended=ended)


def _simulated(instance: Instance) -> SimulatedInstance:
    return SimulatedInstance(instance=instance, options=options_of(instance))
