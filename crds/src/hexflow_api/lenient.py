"""One object as the API server has it, read by a process that may be older than what it holds.

After a roll-back the cluster still has what the newer version wrote: fields that this one does not know are passed
over and named. Everything else must be right, as in `load.py`.
"""

from collections.abc import Mapping
from typing import Any

from hexflow_api.document import field_path
from hexflow_api.gpupool import GPUPool
from hexflow_api.load import parse_resource
from hexflow_api.unknown import without_unknown_fields
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
    pruned, unknown = without_unknown_fields(data, model)
    return parse_resource(pruned), tuple(sorted(field_path(place) for place in unknown))
