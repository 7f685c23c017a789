"""What an emulated instance answers: bodies and stream events in vLLM's shapes."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

VLLM_VERSION = "0.32.0"
"""The version whose behaviour is emulated."""
FINGERPRINT = f"vllm-{VLLM_VERSION}-emulated"
DONE = b"data: [DONE]\n\n"

Json = dict[str, Any]


def usage(*, prompt_tokens: int, output_tokens: int, cached_tokens: int | None) -> Json:
    """Return the counts of tokens; ``cached_tokens`` is left out where the server does not tell."""
    details = None if cached_tokens is None else {"cached_tokens": cached_tokens}
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + output_tokens,
        "completion_tokens": output_tokens,
        "prompt_tokens_details": details,
        "completion_tokens_details": None,
    }


def head(*, identity: str, chat: bool, stream: bool, created: int, model: str) -> Json:
    """Return what every body and every event of one request begins with."""
    kind = ("chat.completion.chunk" if stream else "chat.completion") if chat else "text_completion"
    return {"id": identity, "object": kind, "created": created, "model": model}


def whole_choice(*, chat: bool, index: int, text: str, finish_reason: str, stop_reason: str | None) -> Json:
    """Return one choice of an answer that is not streamed."""
    ends = {"logprobs": None, "finish_reason": finish_reason, "stop_reason": stop_reason, "token_ids": None}
    if not chat:
        return {"index": index, "text": text, **ends, "prompt_logprobs": None, "prompt_token_ids": None}
    message = {
        "role": "assistant",
        "content": text,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "reasoning": None,
    }
    return {"index": index, "message": message, **ends}


def body(common: Json, *, choices: Sequence[Json], counts: Json) -> bytes:
    """Return a whole answer."""
    return msgspec.json.encode(
        {
            **common,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": FINGERPRINT,
            "usage": counts,
            "prompt_logprobs": None,
            "kv_transfer_params": None,
            "metrics": None,
        }
    )


def event(common: Json, *, choices: Sequence[Json], counts: Json | None = None, last: bool = False) -> bytes:
    """Return one event of a stream."""
    content: dict[str, Any] = {**common, "choices": choices}
    if counts is not None:
        content["usage"] = counts
    if last:
        content["system_fingerprint"] = FINGERPRINT
    return b"data: " + msgspec.json.encode(content) + b"\n\n"


def part_choice(
    *,
    chat: bool,
    index: int,
    text: str,
    finish_reason: str | None,
    stop_reason: str | None,
    opening: bool = False,
) -> Json:
    """Return one choice of a stream's event."""
    ends: Json = {"logprobs": None, "finish_reason": finish_reason}
    if finish_reason is not None or not chat:
        ends["stop_reason"] = stop_reason
    if not chat:
        return {"index": index, "text": text, **ends, "token_ids": None}
    delta: Mapping[str, str] = {"role": "assistant", "content": ""} if opening else {"content": text}
    return {"index": index, "delta": delta, **ends, **({} if opening else {"token_ids": None})}
