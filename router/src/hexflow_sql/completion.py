"""The seam between the stages and whatever runs language models for them.

A stage says what it wants completed; who serves it, where and when is not its business.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """Hold a piece of a prompt; pieces go from the most shared to the least (template, schema, question)."""

    role: str
    """OpenAI role: ``system`` or ``user``. Neighbouring blocks of one role become one message, with a blank line between."""
    text: str


def messages(blocks: Sequence[PromptBlock]) -> list[dict[str, str]]:
    """Write blocks as the messages of an OpenAI chat request."""
    written: list[dict[str, str]] = []
    for block in blocks:
        if written and written[-1]["role"] == block.role:
            written[-1]["content"] += "\n\n" + block.text
        else:
            written.append({"role": block.role, "content": block.text})
    return written


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """Ask for one completion of a prompt."""

    task: str
    """What the template is for, e.g. ``candidate`` (``prompt/`` lists them)."""
    blocks: tuple[PromptBlock, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int | None = None
    samples: int = 1
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Further sampling fields of the request's body, in OpenAI's spelling (``top_p``)."""
    response_format: Mapping[str, Any] | None = None
    round: int = 0
    """How many requests of its chain came before it in its stage."""
    sibling: int = 0
    """Its place among the requests released together."""
    optional: bool = False
    """Whether the stage can do without it once another of its requests is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Hold the texts a model gave, one for each sample, and what they cost."""

    texts: tuple[str, ...]
    finish_reasons: tuple[str, ...]
    prompt_tokens: int
    output_tokens: int
    extra: Mapping[str, Any] = field(default_factory=dict)


DROPPED = "Dropped"
"""Reason of a completion that was given up since its question is late and has others to choose from."""


class CompletionError(Exception):
    """A completion could not be had; ``reason`` is a CamelCase word, ``str(error)`` a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class LanguageModel(Protocol):
    """Serve completions."""

    def release(self, requests: Sequence[CompletionRequest], /) -> Sequence[Awaitable[Completion]]:
        """Start all requests together and return one awaitable for each, in order.

        Awaiting raises CompletionError. Cancelling an awaitable (or the task that awaits it) withdraws
        its request.
        """
        ...
