"""A stream of server-sent events under watch: relayed byte for byte, in whole events, and judged.

An engine that is told to stop ends its streams with ``[DONE]`` after a ``finish_reason`` of ``abort`` or none
at all. So an event is passed on only once it is whole, ``[DONE]`` only once every choice has finished, and a
stream that breaks ends with an error event.
"""

import re
from typing import Any

import msgspec

from hexflow_router.errors import ApiError, error_object
from hexflow_scheduler import Usage

_SEPARATOR = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LARGEST_EVENT = 8 << 20


_MOST_TOKENS = 1 << 31


def read_usage(said: Any) -> Usage | None:
    """Return OpenAI's ``usage`` as the kernel's record; None where it is missing or makes no sense.

    An answer is none the worse for it: its tokens are then estimated.
    """
    if not isinstance(said, dict):
        return None
    prompt, output = _tokens(said.get("prompt_tokens")), _tokens(said.get("completion_tokens") or 0)
    if prompt is None or output is None:
        return None
    details = said.get("prompt_tokens_details")
    cached = _tokens(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Usage(
        prompt_tokens=prompt,
        output_tokens=output,
        cached_tokens=None if cached is None else min(cached, prompt),
    )


def _tokens(value: Any) -> int | None:
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS
    return value if sound else None


class _Delta(msgspec.Struct):
    content: Any = None


class _Choice(msgspec.Struct):
    index: int = 0
    finish_reason: str | None = None
    delta: _Delta | None = None
    text: Any = None


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Event)


def error_event(error: ApiError) -> bytes:
    """Return the event that ends a broken stream."""
    return b"data: " + msgspec.json.encode({"error": error_object(error)}) + b"\n\n"


class StreamWatch:
    """Follow one stream. ``feed`` returns what may be passed on; ``failure`` says what went wrong."""

    __slots__ = (
        "_finished",
        "_pieces",
        "_rest",
        "_seen",
        "_text",
        "done",
        "engine_error",
        "engine_status",
        "failure",
        "usage",
    )

    def __init__(self) -> None:
        """Start before the first byte."""
        self._rest = b""
        self._seen: set[int] = set()
        self._finished: set[int] = set()
        self._pieces = 0
        self._text = 0
        self.done = False
        self.failure: tuple[str, str] | None = None
        """Reason and sentence."""
        self.engine_error: str | None = None
        """What the engine itself reported as an error in the stream (relayed as it came)."""
        self.engine_status: int | None = None
        """The status it named."""
        self.usage: Usage | None = None

    @property
    def output_estimate(self) -> int:
        """Return the output in tokens, by the number of events and the length of their text."""
        return max(self._pieces, self._text // 4)

    def feed(self, chunk: bytes) -> bytes:
        """Take bytes from the engine and return those of whole and sound events."""
        data = self._rest + chunk if self._rest else chunk
        start = 0
        for separator in _SEPARATOR.finditer(data, max(0, len(self._rest) - 3)):
            self._judge(data[start : separator.start()])
            if self.failure:
                self._rest = b""
                return data[:start]
            start = separator.end()
            if self.done:
                self._rest = b""
                return data[:start]
        self._rest = data[start:]
        if len(self._rest) > _LARGEST_EVENT:
            self.failure = ("Rubbish", "The engine sent an event without an end.")
            self._rest = b""
        return data[:start]

    def end(self) -> None:
        """Note that the engine closed the stream; without ``[DONE]`` that is a failure."""
        if not self.done and self.failure is None and self.engine_error is None:
            self.failure = ("BrokenAnswer", "The engine's stream ended before it was complete.")

    def _judge(self, event: bytes) -> None:
        for line in event.splitlines():
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                if self.engine_error is not None or (self._finished and self._finished >= self._seen):
                    self.done = True
                else:
                    self.failure = (
                        "AbortedByEngine",
                        "The engine stopped before it had finished the answer.",
                    )
            elif data:
                self._read(data)

    def _read(self, data: bytes) -> None:
        try:
            event = _DECODER.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.failure = ("Rubbish", "The engine sent an event that cannot be read.")
            return
        if event.error is not None:
            fields = event.error if isinstance(event.error, dict) else {"message": event.error}
            self.engine_error = str(fields.get("message", ""))[:300]
            code = fields.get("code")
            self.engine_status = code if isinstance(code, int) else None
        if event.usage is not None:
            self.usage = read_usage(event.usage)
        for choice in event.choices or ():
            self._seen.add(choice.index)
            text = choice.text if choice.delta is None else choice.delta.content
            self._pieces += 1
            if isinstance(text, str):
                self._text += len(text)
            if choice.finish_reason == "abort":
                self.failure = ("AbortedByEngine", "The engine stopped before it had finished the answer.")
            elif choice.finish_reason is not None:
                self._finished.add(choice.index)
