"""Pydantic's errors in the words of somebody who writes YAML: what is wrong and what to write instead."""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hexflow_api.document import Place, field_path
from hexflow_api.meta import PATTERN_WORDS
from hexflow_api.policy import POLICIES, POLICY_WORDS

_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list (lines that begin with '- ')",
    "list_type": "a list (lines that begin with '- ')",
    "dict_type": "a group of fields",
    "model_type": "a group of fields",
    "model_attributes_type": "a group of fields",
}
_BOUNDS = {
    "greater_than_equal": ("must be at least", "ge"),
    "greater_than": ("must be more than", "gt"),
    "less_than_equal": ("must be at most", "le"),
    "less_than": ("must be less than", "lt"),
}

MOST_PLACES = 2
"""A field that there is in more places than these is not said to belong in one of them."""


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[Place, str]]:
    """Yield the place and the message of each thing that ``error`` found wrong with a ``model``."""
    details = error.errors(include_url=False)
    meant = {
        (*detail["loc"][:-1], near)
        for detail in details
        if detail["type"] == "extra_forbidden" and (near := _nearest(*_name_and_fields(detail["loc"], model)))
    }
    for detail in details:
        place, kind = detail["loc"], detail["type"]
        if kind == "rule":
            yield from ((place_of(path), message) for path, message in detail["ctx"]["violations"])
        elif kind == "extra_forbidden":
            yield place, _unknown_field(place, model)
        elif kind == "missing" and place in meant:
            continue  # it is there, misspelt
        elif kind == "too_short" and detail["input"]:
            continue  # its items are wrong, which is said of each
        else:
            yield place, _message(detail, model)


def shown(value: Any) -> str:
    """Return ``value`` as a message may quote it: short, and named by its YAML kind."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, dict):
        return "a group of fields"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value)
    return f"'{text[:57]}…'" if len(text) > 60 else f"'{text}'" if isinstance(value, str) else text


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the nearest of ``known``, or nothing if none is near."""
    near = _nearest(word, known)
    return f"; did you mean '{near}'?" if near else ""


def _meant(given: Any, known: Iterable[str]) -> str:
    if isinstance(given, bool):
        words = ("on", "yes", "y", "true") if given else ("off", "no", "n", "false")
        if bare := next((each for each in known if each.lower() in words), None):
            return f'; without quotes {bare} is a boolean in kubectl\'s YAML, so write "{bare}"'
    return did_you_mean(str(given), known)


def _nearest(word: str, known: Iterable[str]) -> str | None:
    folded = {_folded(each): each for each in known}
    near = difflib.get_close_matches(_folded(word[:100]), list(folded), n=1, cutoff=0.6)
    return folded[near[0]] if near else None


def _folded(word: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", word.lower())


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "missing":
        return "is missing" + _hint(detail["loc"], model)
    if kind in _TYPES:
        group = _model_at(model, detail["loc"]) if _TYPES[kind] == "a group of fields" else None
        fields = f" ({', '.join(_aliases(group))})" if group else ""
        # Text in the place of a group may be the secret itself, which no message repeats.
        what = "text" if _TYPES[kind] == "a group of fields" and isinstance(given, str) else shown(given)
        return f"must be {_TYPES[kind]}{fields}, not {what}{_quoting(kind, given)}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{words} {_number(context[bound])}, not {shown(given)}"
    if kind == "unknown_policy":
        return f"{POLICY_WORDS}, not {shown(given)}{did_you_mean(str(given), POLICIES)}"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        rest = f"must be {known[0]}" if len(known) == 1 else f"must be one of {', '.join(known)}"
        return f"{rest}, not {shown(given)}{_meant(given, known)}"
    if kind == "string_pattern_mismatch":
        return f"{PATTERN_WORDS.get(context['pattern'], 'is not well formed')}, unlike {shown(given)}"
    if kind == "string_too_long":
        return f"must have at most {context['max_length']} characters, not {len(str(given))}"
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "too_short":
        return "must not be empty; leave it out or list something"
    if kind == "too_long":
        return f"must have at most {context['max_length']} items, not {context['actual_length']}"
    return detail["msg"]


def _number(bound: Any) -> str:
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def _quoting(kind: str, given: Any) -> str:
    if kind == "string_type" and isinstance(given, bool | int | float):
        return "; put it in quotes"
    if kind in ("int_type", "float_type", "bool_type") and isinstance(given, str):
        return "; write it without quotes" if re.fullmatch(r"[-+.\d]+|true|false", given) else ""
    return ""


def _hint(place: Place, model: type[BaseModel]) -> str:
    owner, name = _model_at(model, place[:-1]), place[-1]
    for field_name, field in (owner.model_fields if owner else {}).items():
        if name in (field.alias, field_name) and field.description:
            return f": {' '.join(field.description.split()).rstrip('.')}"
    return ""


def _name_and_fields(place: Place, model: type[BaseModel]) -> tuple[str, list[str]]:
    owner = _model_at(model, place[:-1])
    return str(place[-1]), _aliases(owner) if owner else []


def _unknown_field(place: Place, model: type[BaseModel]) -> str:
    name, known = _name_and_fields(place, model)
    if hint := did_you_mean(name, known):
        return f"there is no such field{hint}"
    elsewhere = [field_path(found) for found in _places_of(name, model) if found[:-1] != place[:-1]]
    if 0 < len(elsewhere) <= MOST_PLACES:
        return f"there is no such field here; it belongs at {elsewhere[0]}"
    return f"there is no such field; the fields here are {', '.join(known)}"


def _aliases(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _places_of(alias: str, model: type[BaseModel], above: Place = ()) -> Iterator[Place]:
    for name, field in model.model_fields.items():
        here = (*above, field.alias or name)
        if here[-1] == alias:
            yield here
        below = model_in(field.annotation)
        if below is not None and len(here) < 8:
            yield from _places_of(alias, below, here)


def _model_at(model: type[BaseModel], place: Place) -> type[BaseModel] | None:
    """Return the model that describes the value at ``place``."""
    current: type[BaseModel] | None = model
    for step in place:
        if isinstance(step, int):
            continue
        if current is None:
            return None
        fields = current.model_fields.items()
        current = next(
            (model_in(field.annotation) for name, field in fields if step in (field.alias, name)), None
        )
    return current


def model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model within ``X | None``, ``tuple[X, ...]`` and ``Annotated[X, …]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_in(part)) is not None), None)


def place_of(path: str) -> Place:
    """Return the place that a path like ``spec.stages[1].after[0]`` names."""
    return tuple(
        int(index) if index else name
        for name, index in re.findall(r"([^.\[\]]+)(?![^\[]*\])|\[(\d+)\]", path)
    )
