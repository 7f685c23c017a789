"""A caller's JSON body: what the router reads of it, and the two fields it may rewrite.

Nothing is injected and nothing is re-serialised: where no field changes the bytes go on as they came; where
``model`` (an alias) or ``priority`` does, every other value keeps its bytes.
"""

from typing import Any, TypeVar

import msgspec

from hexflow_router.errors import ApiError

T = TypeVar("T")


class BodyHead(msgspec.Struct, kw_only=True):
    """Hold the top-level fields that scheduling needs; all others are skipped."""

    model: Any = None
    stream: Any = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    n: Any = None
    priority: Any = None
    metadata: Any = None
    messages: msgspec.Raw = msgspec.Raw()
    prompt: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    tools: msgspec.Raw = msgspec.Raw()

    def wants_stream(self) -> bool:
        """Return whether server-sent events are asked for."""
        return self.stream is True

    def output_limit(self) -> int | None:
        """Return the stated bound on the output in tokens, None where there is none."""
        for limit in (self.max_completion_tokens, self.max_tokens):
            if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
                return limit
        return None

    def samples(self) -> int:
        """Return how many completions are asked for."""
        return (
            self.n if isinstance(self.n, int) and not isinstance(self.n, bool) and 1 <= self.n <= 1024 else 1
        )

    def prompt_bytes(self) -> bytes:
        """Return the raw JSON that becomes the prompt, for an estimate of its tokens."""
        return b"".join(bytes(part) for part in (self.tools, self.messages, self.prompt, self.input))


_HEAD = msgspec.json.Decoder(BodyHead)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_head(body: bytes) -> BodyHead:
    """Read the fields of a body. Raises ApiError (400) for what is not a JSON object in UTF-8."""
    return read_object(body, _HEAD, such_as='{"model": …}')


def read_object(body: bytes, decoder: msgspec.json.Decoder[T], *, such_as: str) -> T:
    """Decode a body, whichever door it came in by. Raises ApiError (400) for what is not a JSON object in UTF-8."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ApiError(
            f"The body is not UTF-8: byte {problem.start} cannot be decoded. Send JSON encoded as UTF-8.",
            status=400,
            code="invalid_utf8",
        ) from None
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as problem:
        what = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        message = f"The body is not valid JSON: {what}."
        if what.startswith("Expected `object`"):
            message = f"The body must be a JSON object such as {such_as}."
        raise ApiError(message, status=400, code="invalid_json") from None


def with_model(body: bytes, model: str) -> bytes:
    """Return the body with another ``model``; every other value keeps its bytes."""
    fields = _FIELDS.decode(body)
    fields["model"] = msgspec.Raw(msgspec.json.encode(model))
    return msgspec.json.encode(fields)


def with_priority(body: bytes, priority: int | None) -> bytes:
    """Return the body with this ``priority``, or with none whatever its sender wrote; all else keeps its bytes."""
    if priority is None and b"priority" not in body and b"\\u" not in body:
        return body
    fields = _FIELDS.decode(body)
    if priority is not None:
        fields["priority"] = msgspec.Raw(str(priority).encode())
    elif fields.pop("priority", None) is None:
        return body
    return msgspec.json.encode(fields)
