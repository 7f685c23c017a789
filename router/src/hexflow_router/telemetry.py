"""What an engine says of itself: its models, its load, and when its process began.

The names of vLLM's metrics have changed between versions, so each is looked up by all the names it has had.
Pure readers of bytes; ``discovery.py`` fetches them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families

ALIASES: Mapping[str, tuple[str, ...]] = {
    "running": ("vllm:num_requests_running", "llamacpp:requests_processing", "sglang:num_running_reqs"),
    "waiting": ("vllm:num_requests_waiting", "llamacpp:requests_deferred", "sglang:num_queue_reqs"),
    "kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "llamacpp:kv_cache_usage_ratio"),
    "started_at": ("process_start_time_seconds",),
    "cache_config": ("vllm:cache_config_info",),
}
"""Our names and the names that engines have given the same number."""

_FIELD_OF = {name: field for field, names in ALIASES.items() for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSample:
    """Hold one reading of an engine's metrics; None where it does not say."""

    at: float
    """Instant of the reading, on the clock of whoever read it."""
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    """Part of the KV cache in use, 0 to 1."""
    started_at: float | None = None
    """When the engine's process began, seconds since the epoch: another value is another server."""
    kv_tokens: int | None = None
    """Tokens that fit the KV cache."""

    @property
    def load(self) -> int | None:
        """Calls on the engine, running and waiting."""
        if self.running is None:
            return None
        return self.running + (self.waiting or 0)


def read_metrics(page: bytes, *, at: float) -> EngineSample:
    """Read the page of an engine's ``/metrics``. Raises ValueError for what is no such page."""
    lines = [
        line
        for line in page.decode("utf-8").splitlines()
        if line.partition("{")[0].partition(" ")[0] in _FIELD_OF
    ]
    values: dict[str, float] = {}
    kv_tokens: int | None = None
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            field = _FIELD_OF[sample.name]
            if field == "cache_config":
                kv_tokens = (kv_tokens or 0) + _kv_tokens(sample.labels)
            elif field == "started_at":
                values[field] = sample.value
            else:
                # One series for each engine behind the server (data parallel) and model.
                values[field] = values.get(field, 0.0) + sample.value
    return EngineSample(
        at=at,
        running=_count(values.get("running")),
        waiting=_count(values.get("waiting")),
        kv_usage=values.get("kv_usage"),
        started_at=values.get("started_at"),
        kv_tokens=kv_tokens or None,
    )


def _count(value: float | None) -> int | None:
    return int(value) if value is not None and 0 <= value < math.inf else None


def _kv_tokens(labels: Mapping[str, str]) -> int:
    blocks = labels.get("num_gpu_blocks") or labels.get("num_cpu_blocks") or ""
    size = labels.get("block_size") or ""
    return int(blocks) * int(size) if blocks.isdigit() and size.isdigit() else 0


class ServedModel(msgspec.Struct, frozen=True):
    """Hold one model of ``/v1/models``."""

    id: str
    max_model_len: int | None = None


class _Listing(msgspec.Struct):
    data: list[Any]


def read_models(body: bytes) -> tuple[ServedModel, ...]:
    """Read the answer of ``/v1/models``; a length that makes no sense counts as none. Raises ValueError for what is no such answer."""
    try:
        listing = msgspec.json.decode(body, type=_Listing)
        return tuple(
            ServedModel(model.id, model.max_model_len if (model.max_model_len or 0) > 0 else None)
            for model in msgspec.convert(listing.data, list[ServedModel])
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(f"not a list of models: {problem}") from None
