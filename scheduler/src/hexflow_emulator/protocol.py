"""vLLM's HTTP bodies: what is read of a request, how a prompt is rendered, what errors look like.

Shapes and words follow vLLM 0.32; fields that have no meaning without a model are read over, as vLLM
reads over fields it does not know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

CHAT_TURN = "<|im_start|>{role}\n{content}<|im_end|>\n"
CHAT_END = "<|im_start|>assistant\n"
DEFAULT_COMPLETION_TOKENS = 16
"""What a plain completion writes at most where its body does not say."""


class RequestError(Exception):
    """A request that vLLM refuses; ``body`` is what it answers."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(str(body))
        self.status = status
        self.body = body


def refusal(
    message: str, *, param: str | None = None, status: int = 400, kind: str = "BadRequestError"
) -> RequestError:
    """Return an error in OpenAI's form."""
    return RequestError(status, {"error": {"message": message, "type": kind, "param": param, "code": status}})


class StreamOptions(msgspec.Struct):
    """OpenAI's ``stream_options``."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class Sampling(msgspec.Struct, kw_only=True):
    """The fields that chat and plain completions share."""

    model: str | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    n: int | None = 1
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: str | list[str] | None = None
    priority: int | None = 0
    ignore_eos: bool | None = False
    min_tokens: int | None = 0


class Message(msgspec.Struct):
    """One turn of a conversation."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_calls: Any = None


class ChatBody(Sampling):
    """The body of a chat completion."""

    messages: list[Message]
    max_completion_tokens: int | None = None
    tools: Any = None


class CompletionBody(Sampling):
    """The body of a plain completion."""

    prompt: str | list[str | int | list[int]] = ""
    echo: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Hold a rendered prompt; ``tokens`` is set where the caller sent token ids."""

    text: str
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Hold what a request asks for, the same for both kinds."""

    model: str | None
    prompts: tuple[Prompt, ...]
    stream: bool
    include_usage: bool
    continuous_usage: bool
    max_tokens: int | None
    samples: int
    seed: int | None
    stop: tuple[str, ...]
    priority: int
    ignore_eos: bool
    min_tokens: int
    echo: bool


_CHAT = msgspec.json.Decoder(ChatBody, strict=False)
_COMPLETION = msgspec.json.Decoder(CompletionBody, strict=False)


def read(body: bytes, *, chat: bool) -> Asked:
    """Read a request's body. Raises RequestError with vLLM's answer to a wrong one."""
    try:
        body.decode()
    except UnicodeDecodeError:
        raise RequestError(400, {"detail": "There was an error parsing the body"}) from None
    decoder: Any = _CHAT if chat else _COMPLETION
    try:
        asked = decoder.decode(body)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`").strip(".").split("[")[0].split(".")[0]
        if "missing required field" in message:
            field = message.split("`")[1]
        place = f"body.{field}" if field else "body"
        raise refusal(
            f"1 validation error:\n  {{'loc': '{place}', 'msg': '{message}'}}",
            param=place,
            kind="Bad Request",
        ) from None
    except msgspec.DecodeError as error:
        raise refusal(
            f"1 validation error:\n  {{'type': 'json_invalid', 'loc': 'body', 'msg': 'JSON decode error', "
            f"'ctx': {{'error': '{error}'}}}}",
            param="body",
            kind="Bad Request",
        ) from None
    return _asked(asked)


def _asked(body: ChatBody | CompletionBody) -> Asked:
    if body.stream_options is not None and not body.stream:
        raise refusal(
            "Stream options can only be defined when `stream=True`. (parameter=stream_options)",
            param="stream_options",
        )
    if body.n is not None and body.n < 1:
        raise refusal(f"n must be at least 1, got {body.n}.")
    if body.temperature is not None and body.temperature < 0:
        raise refusal(
            f"temperature must be non-negative, got {body.temperature}. (parameter=temperature, value={body.temperature})",
            param="temperature",
        )
    if body.temperature == 0 and (body.n or 1) > 1:
        raise refusal(f"n must be 1 when using greedy sampling, got {body.n}.")
    if body.top_p is not None and not 0 < body.top_p <= 1:
        raise refusal(
            f"top_p must be in (0, 1], got {body.top_p}. (parameter=top_p, value={body.top_p})", param="top_p"
        )
    max_tokens = body.max_tokens
    if isinstance(body, ChatBody) and body.max_completion_tokens is not None:
        max_tokens = body.max_completion_tokens
    elif isinstance(body, CompletionBody) and max_tokens is None:
        max_tokens = DEFAULT_COMPLETION_TOKENS
    if max_tokens is not None and max_tokens < 1:
        raise refusal(
            f"max_tokens must be at least 1, got {max_tokens}. (parameter=max_tokens, value={max_tokens})",
            param="max_tokens",
        )
    if max_tokens is not None and (body.min_tokens or 0) > max_tokens:
        raise refusal(
            f"min_tokens must be less than or equal to max_tokens={max_tokens}, got {body.min_tokens}."
        )
    options = body.stream_options or StreamOptions()
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return Asked(
        model=body.model,
        prompts=(render(body),) if isinstance(body, ChatBody) else _prompts(body.prompt),
        stream=bool(body.stream),
        include_usage=bool(options.include_usage),
        continuous_usage=bool(options.include_usage and options.continuous_usage_stats),
        max_tokens=max_tokens,
        samples=body.n or 1,
        seed=0 if body.seed is None and body.temperature == 0 else body.seed,
        stop=tuple(word for word in stop if word),
        priority=body.priority or 0,
        ignore_eos=bool(body.ignore_eos),
        min_tokens=body.min_tokens or 0,
        echo=isinstance(body, CompletionBody) and bool(body.echo),
    )


def render(body: ChatBody) -> Prompt:
    """Render a conversation as a chat template does."""
    if not body.messages:
        raise refusal("Cannot apply chat template to an empty conversation. Provide at least one message.")
    turns = []
    if body.tools:
        turns.append(CHAT_TURN.format(role="tools", content=msgspec.json.encode(body.tools).decode()))
    for message in body.messages:
        content = message.content or ""
        if not isinstance(content, str):
            content = "".join(str(part.get("text", "")) for part in content)
        if message.tool_calls:
            content += msgspec.json.encode(message.tool_calls).decode()
        turns.append(CHAT_TURN.format(role=message.role, content=content))
    return Prompt(text="".join(turns) + CHAT_END)


def _prompts(prompt: str | list[str | int | list[int]]) -> tuple[Prompt, ...]:
    if isinstance(prompt, str):
        prompt = [prompt]
    elif not prompt:
        raise refusal("You must pass at least one prompt")
    if not all(each or each == 0 for each in prompt):
        raise refusal(
            "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)",
            param="prompt",
        )
    ids = [each for each in prompt if isinstance(each, int)]
    if ids:
        return (_of_ids(ids),)
    return tuple(
        Prompt(text=each) if isinstance(each, str) else _of_ids(each)
        for each in prompt
        if not isinstance(each, int)
    )


def _of_ids(ids: Sequence[int]) -> Prompt:
    # Ids are hashed like text, four bytes each: as many tokens as there are ids.
    return Prompt(text="".join(f"{number & 0xFFFF:04x}" for number in ids), tokens=len(ids))
