"""A rule between fields that a schema cannot say, written once.

A rule is CEL (for the API server), a message with its remedy, and the same test in Python, so that
`hexflow validate` speaks the API server's words. The tables are ``poolrules`` and ``workflowrules``. Rules between
*objects* (a workflow and its pools) are in ``reference``: the API server cannot know them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

LONGEST_NAME: Final = 40
"""Characters of a resource's name: what is named after it must still be a DNS label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """State what must hold at one place of a resource."""

    kind: str
    """The resource kind it belongs to."""
    path: str
    """The place in camelCase, such as ``spec.stages``; empty for the whole resource, ``[*]`` for each item."""
    cel: str
    """The test for the API server, where ``self`` is the value at ``path``."""
    message: str
    """What must hold and what to write instead."""
    faults: Callable[[Any], Iterable[str]]
    """The test in Python: given the value at ``path``, yield the place below it of each offender (empty: the value itself)."""
    field: str = ""
    """The field below ``path`` that is always the offender, which the API server then names."""
    changed: Callable[[Any, Any], bool] | None = None
    """Of a rule about changes: whether an old and a new value at ``path`` break it; CEL knows them as oldSelf and self."""

    @property
    def place(self) -> str:
        """The place that a message names, as far as it is always the same."""
        return joined(self.path, self.field)


def joined(place: str, fault: str) -> str:
    """Return the path of what ``fault`` names below ``place``."""
    return place + fault if not place or not fault or fault.startswith("[") else f"{place}.{fault}"


def python_name(value: BaseModel, alias: str) -> str:
    """Return the attribute that ``alias`` stands for."""
    return next(name for name, field in type(value).model_fields.items() if alias in (field.alias, name))


def set_fields(value: BaseModel, *aliases: str) -> list[str]:
    """Return those of the fields that have a value."""
    values = {alias: getattr(value, python_name(value, alias)) for alias in aliases}
    return [alias for alias, given in values.items() if given is not None and given is not False]


def unless(holds: bool, place: str = "") -> tuple[str, ...]:
    """Return the one offending place where ``holds`` is false."""
    return () if holds else (place,)


def seen_before(values: Iterable[Any]) -> Iterator[int]:
    """Yield the index of each value that was there before."""
    seen = set()
    for index, value in enumerate(values):
        if value in seen:
            yield index
        seen.add(value)


def exactly_one(kind: str, path: str, *fields: str, remedy: str) -> Rule:
    """Demand exactly one of ``fields`` at ``path``."""
    return Rule(
        kind=kind,
        path=path,
        cel=f"[{', '.join(f'has(self.{field})' for field in fields)}].exists_one(given, given)",
        message=f"give exactly one of {', '.join(fields)}; {remedy}",
        faults=lambda value: unless(len(set_fields(value, *fields)) == 1),
    )


def names(kind: str) -> tuple[Rule, Rule]:
    """Demand a name from which other objects can be named."""
    return (
        Rule(
            kind=kind,
            path="",
            field="metadata.name",
            cel="!self.metadata.name.startsWith('hexflow-')",
            message="a name must not begin with 'hexflow-', which HexFlow keeps for what it makes; choose another",
            faults=lambda resource: unless(
                not resource.metadata.name.startswith("hexflow-"), "metadata.name"
            ),
        ),
        Rule(
            kind=kind,
            path="",
            field="metadata.name",
            cel=f"self.metadata.name.size() <= {LONGEST_NAME} && !self.metadata.name.contains('.')",
            message=f"a name has at most {LONGEST_NAME} characters and no dot, for other objects are named after it;"
            " choose another",
            faults=lambda resource: unless(
                len(resource.metadata.name) <= LONGEST_NAME and "." not in resource.metadata.name,
                "metadata.name",
            ),
        ),
    )


def selectors(kind: str, path: str) -> Rule:
    """Demand of the label selector at ``path`` what Kubernetes demands of one."""
    return Rule(
        kind=kind,
        path=f"{path}.matchExpressions[*]",
        cel="(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
        message="In and NotIn need values, Exists and DoesNotExist take none; add values or take them out",
        faults=lambda asked: unless((asked.operator in ("In", "NotIn")) == bool(asked.values)),
    )
