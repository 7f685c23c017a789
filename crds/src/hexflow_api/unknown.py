"""What is taken out of an object before it is read: nulls, and fields that only a newer version has.

After a roll-back the cluster still holds what the newer version wrote.
"""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from hexflow_api.document import Place
from hexflow_api.explain import model_in


def without_unknown_fields(
    data: Mapping[str, Any], model: type[BaseModel]
) -> tuple[Mapping[str, Any], tuple[Place, ...]]:
    """Return ``data`` without the fields that ``model`` does not know, and the places of these."""
    try:
        model.model_validate(data, by_name=False, by_alias=True)
    except ValidationError as error:
        unknown = tuple(each["loc"] for each in error.errors() if each["type"] == "extra_forbidden")
    else:
        unknown = ()
    kept: Any = data
    for place in unknown:
        kept = _without(kept, place)
    return kept, unknown


def as_served(value: Any, model: type[BaseModel]) -> Any:
    """Return ``value`` as the API server takes it: `replicas:` is the same as no such line, and `replicas: 2.0` as 2.

    Nulls that stay: of fields that ``model`` does not know, of items of a list, and within native pieces, where one may mean
    something (a strategic merge patch deletes by it).
    """
    if isinstance(value, list):
        return [as_served(item, model) for item in value]
    if not isinstance(value, Mapping):
        return value
    known = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    return {
        key: _plain(item, known[key]) if key in known else item
        for key, item in value.items()
        if item is not None or key not in known
    }


def _plain(value: Any, annotation: Any) -> Any:
    inner = model_in(annotation)
    if inner is not None:
        return as_served(value, inner)
    if isinstance(value, Mapping) and not _native(annotation):
        return {key: item for key, item in value.items() if item is not None}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _native(annotation: Any) -> bool:
    return annotation is Any or any(_native(part) for part in get_args(annotation))


def _without(value: Any, place: Place) -> Any:
    """Return ``value`` without what is at ``place``; what is not a group or list is not changed."""
    if not place:
        return value
    step, rest = place[0], place[1:]
    if isinstance(value, Mapping) and step in value:
        others = {key: item for key, item in value.items() if key != step}
        return {**value, step: _without(value[step], rest)} if rest else others
    if isinstance(value, list):
        return [_without(item, rest) if index == step else item for index, item in enumerate(value)]
    return value
