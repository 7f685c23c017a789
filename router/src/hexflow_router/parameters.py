"""The policy's parameters in force of each workflow, and who said so: pinned, tuned, the seed of tuning, the default.

What a tuner found is used while the workflow asks for it (mode Auto), within the bounds that its resource sets. A
ConfigMap that cannot be used is refused whole and said so; the last good one stays. Knows no kernel and no API server.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from hexflow_api import ParameterInForce, TextToSQLWorkflow
from hexflow_api.policy import PARAMETERS, PINNED
from hexflow_api.tuned import IN_FORCE_KEY, TunedParameters, read_tuned

_log = logging.getLogger("hexflow.router.parameters")


class ParameterBook:
    """Remember what was tuned for each workflow. For one event loop."""

    def __init__(self) -> None:
        self._tuned: dict[str, TunedParameters] = {}
        self._refused: dict[str, str] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """Why what a tuner wrote is not in force, in sentences."""
        return tuple(self._refused.values())

    def take(
        self, workflows: Iterable[TextToSQLWorkflow], config_maps: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Take over the ConfigMaps `<workflow>-policy` as they are now, by workflow; others are forgotten."""
        there = {workflow.name: workflow for workflow in workflows}
        self._tuned = {name: each for name, each in self._tuned.items() if name in there}
        self._refused = {name: each for name, each in self._refused.items() if name in there}
        for name, workflow in there.items():
            self._take(workflow, config_maps.get(name))

    def _take(self, workflow: TextToSQLWorkflow, config_map: Mapping[str, Any] | None) -> None:
        name = workflow.name
        written = IN_FORCE_KEY in ((config_map or {}).get("data") or {})
        found = read_tuned(config_map).in_force
        problem = None
        if written and found is None:
            problem = "it holds no parameters that can be read"
        elif found is not None:
            problem = next(iter(unusable(workflow, found.values)), None)
        if problem is None:
            self._refused.pop(name, None)
            if found is None:
                self._tuned.pop(name, None)
            else:
                self._tuned[name] = found
            return
        sentence = f"ConfigMap {name}-policy is not used, the last good parameters stay: {problem}"
        if self._refused.get(name) != sentence:
            _log.warning("%s", sentence)
        self._refused[name] = sentence

    def of(self, workflow: TextToSQLWorkflow) -> dict[str, ParameterInForce]:
        """Return the parameters that somebody set for the workflow's policy, by name; defaults are not among them."""
        scheduling = workflow.spec.scheduling
        found: dict[str, ParameterInForce] = {}
        tuned = self._tuned.get(workflow.name) if _follows(workflow) else None
        if tuned is not None and any(unusable(workflow, tuned.values)):
            tuned = None  # good once, and the bounds have moved
        for name in PARAMETERS.get(scheduling.rules[0], {}):
            given = getattr(scheduling, name, None)
            if given is not None and given.value is not None:
                found[name] = ParameterInForce(value=given.value, source="Pinned")
            elif tuned is not None and name in tuned.values:
                found[name] = ParameterInForce(value=tuned.values[name], source="Tuned", since=tuned.since)
            elif given is not None:
                found[name] = ParameterInForce(value=given.initial, source="Seed")
        return found


def unusable(workflow: TextToSQLWorkflow, values: Mapping[str, float]) -> list[str]:
    """Return what is wrong with tuned values, in words: other policies' parameters, those that are not tuned, and values out of bounds."""
    scheduling = workflow.spec.scheduling
    rule = scheduling.rules[0]
    declared = PARAMETERS.get(rule, {})
    found = []
    for name, value in sorted(values.items()):
        if name not in declared:
            found.append(f"{rule} has no parameter {name}")
            continue
        if name in PINNED:
            found.append(f"{name} is not tuned; pin it in the workflow")
            continue
        given = getattr(scheduling, name, None)
        low, high = declared[name]
        if given is not None and given.value is None:
            low = low if given.min is None else given.min
            high = high if given.max is None else given.max
        if not low <= value <= high:
            found.append(f"{name} must lie between {low:g} and {high:g}, and is {value:g}")
    return found


def _follows(workflow: TextToSQLWorkflow) -> bool:
    return workflow.spec.tuning is not None and workflow.spec.tuning.mode == "Auto"
