"""One object as the API server has it, read by a process that may be older than what it holds.

After a roll-back the cluster still has what the newer version wrote: fields that this one does not know are passed
over and named. Everything else must be right, as in `load.py`.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from hexflow_api.document import field_path
from hexflow_api.gpupool import GPUPool
from hexflow_api.load import parse_resource
from hexflow_api.workflow import TextToSQLWorkflow

_KINDS: dict[str, type[GPUPool] | type[TextToSQLWorkflow]] = {
    "GPUPool": GPUPool,
    "TextToSQLWorkflow": TextToSQLWorkflow,
}


def parse_leniently(data: Mapping[str, Any]) -> tuple[GPUPool | TextToSQLWorkflow, tuple[str, ...]]:
    """Return the resource in ``data``, and the paths of the fields that were passed over. Raises ResourceError."""
    model = _KINDS.get(str(data.get("kind")))
    if model is None:
        return parse_resource(data), ()
    try:
        return model.model_validate(data, by_name=False, by_alias=True), ()
    except ValidationError as error:
        unknown = [item["loc"] for item in error.errors() if item["type"] == "extra_forbidden"]
    pruned: Any = data
    for place in unknown:
        pruned = _without(pruned, place)
    resource = parse_resource(pruned)  # what is wrong now is said as always
    return resource, tuple(sorted(field_path(place) for place in unknown))


def _without(value: Any, place: tuple[int | str, ...]) -> Any:
    step, *rest = place
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if key != step or rest}
        return kept | ({str(step): _without(value[str(step)], tuple(rest))} if rest else {})
    return [_without(item, tuple(rest)) if index == step else item for index, item in enumerate(value)]
