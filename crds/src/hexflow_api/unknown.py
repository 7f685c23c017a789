"""Fields that a newer version has and this one does not, taken out of an object so that the rest can be used.

After a roll-back the cluster still holds what the newer version wrote.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from hexflow_api.document import Place


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
