"""Plain data: the kernel's records as JSON objects with camelCase names, and back.

Fields that have their default are left out, so a later version may add one.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any, TypeVar

from hexflow_scheduler.call import Call, PrefixBlock
from hexflow_scheduler.decision import Abort, Decision, End, Outcome, Place, Send
from hexflow_scheduler.errors import InvalidRecord
from hexflow_scheduler.instance import Instance, InstanceState
from hexflow_scheduler.profile import Profile

Made = TypeVar("Made")

DECISIONS: Mapping[str, type[Decision]] = {
    "place": Place,
    "send": Send,
    "abort": Abort,
    "end": End,
}
_DECISION_NAMES = {kind: name for name, kind in DECISIONS.items()}


def to_plain(value: Any) -> Any:
    """Return a record, or anything made of records, as plain data."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    return {
        wire: to_plain(given)
        for name, wire, default in _layout(type(value))
        if (given := getattr(value, name)) != default or default is MISSING
    }


def from_plain(kind: type[Made], data: Mapping[str, Any]) -> Made:
    """Return the record of a kind that ``to_plain`` described; raises InvalidRecord for anything else."""
    values: dict[str, Any] = {}
    for name, wire, _ in _layout(kind):
        if wire in data:
            convert = _CONVERSIONS.get((kind, name))
            values[name] = convert(data[wire]) if convert and data[wire] is not None else data[wire]
    unknown = set(data) - {wire for _, wire, _ in _layout(kind)}
    if unknown:
        raise InvalidRecord(f"{kind.__name__} has no {', '.join(sorted(unknown))}; a newer version wrote it")
    try:
        return kind(**values)
    except TypeError as error:
        raise InvalidRecord(f"{kind.__name__}: {error}") from error


def decision_to_plain(decision: Decision) -> dict[str, Any]:
    """Return a decision as ``{its kind: its fields}``."""
    return {_DECISION_NAMES[type(decision)]: to_plain(decision)}


def decision_from_plain(data: Mapping[str, Any]) -> Decision:
    """Return the decision that ``decision_to_plain`` described."""
    ((name, values),) = data.items()
    return from_plain(DECISIONS[name], values)


def _layout(kind: type[Any]) -> tuple[tuple[str, str, Any], ...]:
    layout = _layouts.get(kind)
    if layout is None:
        layout = tuple((field.name, _camel(field.name), field.default) for field in fields(kind))
        _layouts[kind] = layout
    return layout


_layouts: dict[type[Any], tuple[tuple[str, str, Any], ...]] = {}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_CONVERSIONS: Mapping[tuple[type[Any], str], Callable[[Any], Any]] = {
    (Call, "pools"): frozenset,
    (Call, "prefix"): lambda blocks: tuple(from_plain(PrefixBlock, block) for block in blocks),
    (Instance, "models"): frozenset,
    (Instance, "profile"): lambda data: from_plain(Profile, data),
    (Instance, "state"): InstanceState,
    (Place, "scores"): lambda pairs: tuple((name, score) for name, score in pairs),
    (End, "outcome"): Outcome,
}
