"""What a caller of the OpenAI surface may say about its call: workflow, query, stage, deadline and their kin.

A plain OpenAI client says nothing of it. For each hint a header wins over OpenAI's ``metadata``, which wins over
the model's alias (``name@stage``), which wins over the default. Pure: headers and fields in, ``Hints`` out.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hexflow_router.errors import ApiError

_NAME = re.compile(r"[\w.:/@+-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Hold what a caller said; None where it said nothing."""

    workflow: str | None = None
    query: str | None = None
    stage: str | None = None
    deadline_seconds: float | None = None
    """Time left for the whole query, from now; may be negative when it is late already."""
    first_token_seconds: float | None = None
    """Time in which the first token is wanted."""
    objective: str | None = None
    """SLO class, in the words of the gateway's inference extension."""
    fairness_id: str | None = None
    """Whom the call is made for, in the words of the gateway's inference extension."""


def split_alias(model: str) -> tuple[str, str | None]:
    """Split ``name@stage``; a name without ``@`` has no stage."""
    name, at, stage = model.rpartition("@")
    return (name, stage) if at and name and stage else (model, None)


def read_hints(headers: Mapping[str, str], metadata: Any, *, alias_stage: str | None = None) -> Hints:
    """Read the hints of a call. Raises ApiError (400) for one that cannot be understood."""
    fields = metadata if isinstance(metadata, dict) else {}

    def said(name: str) -> str | None:
        header = headers.get(f"x-hexflow-{name}", "").strip()
        if header:
            return header
        for key in (f"x-hexflow-{name}", f"hexflow-{name}", f"hexflow_{name.replace('-', '_')}"):
            value = fields.get(key)
            if isinstance(value, (str, int, float)) and str(value).strip():
                return str(value).strip()
        return None

    def gateway(name: str) -> str | None:
        return _name(
            headers.get(f"x-gateway-inference-{name}")
            or headers.get(f"x-llm-d-inference-{name}")
            or headers.get(f"x-llm-d-{name}"),
            name,
        )

    return Hints(
        workflow=_name(said("workflow"), "x-hexflow-workflow"),
        query=_name(said("query"), "x-hexflow-query"),
        stage=_name(said("stage") or alias_stage, "x-hexflow-stage"),
        deadline_seconds=_milliseconds(said("deadline-ms"), "x-hexflow-deadline-ms"),
        first_token_seconds=_milliseconds(
            headers.get("x-slo-ttft-ms") or headers.get("x-llm-d-slo-ttft-ms"), "x-slo-ttft-ms"
        ),
        objective=gateway("objective"),
        fairness_id=gateway("fairness-id"),
    )


def _name(value: str | None, field: str) -> str | None:
    if value is None or not value.strip():
        return None
    if not _NAME.fullmatch(value.strip()):
        raise ApiError(
            f"{field} must be a name of at most 128 letters, digits and . _ : / @ + -",
            status=400,
            code="invalid_header",
            param=field,
        )
    return value.strip()


def _milliseconds(value: str | None, field: str) -> float | None:
    if value is None or not value.strip():
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or abs(number) > 1e12:
        raise ApiError(
            f"{field} must be a number of milliseconds, such as 30000.",
            status=400,
            code="invalid_header",
            param=field,
        )
    return number / 1000
