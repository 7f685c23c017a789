"""Which rules a resource breaks, and where."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from hexflow_api.poolrules import POOL_RULES
from hexflow_api.rule import Rule, joined, python_name
from hexflow_api.workflowrules import WORKFLOW_RULES

RULES: Final[tuple[Rule, ...]] = (*POOL_RULES, *WORKFLOW_RULES)
"""Every rule, by kind and place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Say which rule an object breaks and where."""

    rule: Rule
    path: str
    """The offending place in camelCase, from the root of the resource."""

    def __str__(self) -> str:
        return f"{self.path}: {self.rule.message}"


def violations(resource: BaseModel) -> list[Violation]:
    """Return what ``resource`` breaks of the rules of its kind, in the table's order; those about changes apart."""
    found = []
    for rule in RULES:
        if rule.kind != type(resource).__name__:
            continue
        for place, value in _places(resource, rule.path):
            found += [Violation(rule=rule, path=joined(place, fault)) for fault in rule.faults(value)]
    return found


def refused_changes(old: BaseModel, new: BaseModel) -> list[Violation]:
    """Return the rules about changes that ``new`` breaks where it takes the place of ``old``."""
    kind = type(new).__name__
    rules = [(rule, rule.changed) for rule in RULES if rule.kind == kind and rule.changed is not None]
    return [
        Violation(rule=rule, path=rule.place)
        for rule, changed in rules
        for (_, before), (_, after) in zip(_places(old, rule.path), _places(new, rule.path), strict=False)
        if changed(before, after)
    ]


def refuse_violations(resource: BaseModel) -> None:
    """Raise the validation error of every rule that ``resource`` breaks."""
    if found := violations(resource):
        raise PydanticCustomError(
            "rule",
            "{text}",
            {
                "text": "; ".join(map(str, found)),
                "violations": [(each.path, each.rule.message) for each in found],
            },
        )


def _places(value: Any, path: str, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value that ``path`` names, with its place; what is absent is passed over."""
    if value is None:
        return
    if not path:
        yield place, value
        return
    step, _, rest = path.partition(".")
    name = step.removesuffix("[*]")
    below = getattr(value, python_name(value, name))
    where = f"{place}.{name}" if place else name
    if not step.endswith("[*]"):
        yield from _places(below, rest, where)
        return
    for index, item in enumerate(below or ()):
        yield from _places(item, rest, f"{where}[{index}]")
