"""What is asked of a modelled engine and what it reports: records without behaviour, which nobody changes.

The two of which there is one for every call are not frozen: that would treble the time to make them.
"""

from dataclasses import dataclass
from enum import StrEnum

from hexflow_scheduler import PrefixBlock


class EngineOrder(StrEnum):
    """Say whom a freed slot goes to: vLLM's ``--scheduling-policy``."""

    FCFS = "fcfs"
    PRIORITY = "priority"
    """Lowest priority number first, then first come; the highest number is preempted first."""


class RequestTooLargeError(ValueError):
    """The KV cache could not hold the request even alone: shorten it or give the engine more memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Set what a profile does not say about an engine."""

    order: EngineOrder = EngineOrder.FCFS
    block_tokens: int = 16
    keep_prefixes: bool = True
    step_tokens: int = 2048
    """Tokens that one step may compute: vLLM's ``--max-num-batched-tokens``."""
    overhead_seconds: float = 0.015
    """Fixed cost of a call before the engine sees it (HTTP, tokenising)."""


@dataclass(slots=True, kw_only=True)
class EngineRequest:
    """Ask the engine for one completion. Its true output length is known here, and only here."""

    request_id: str
    prompt_tokens: int
    output_tokens: int
    prefix: tuple[PrefixBlock, ...] = ()
    """Leading blocks of the prompt that others may share, in order."""
    priority: int = 0
    stage: str = ""
    """What it is for; only the authors' engine model asks (``authors``)."""


@dataclass(slots=True, kw_only=True)
class Finished:
    """Report a completed request. Instants are the caller's, in seconds; lengths are tokens."""

    request_id: str
    submitted: float
    started: float
    """When it first left the waiting queue."""
    first_token: float
    finished: float
    cached_tokens: int
    """Prompt tokens found in the prefix cache when it first started."""
    output_tokens: int
    preemptions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Say how far a request is at an instant."""

    output_tokens: int
    started: float | None
    first_token: float | None
    cached_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCounts:
    """Count what the engine's own metrics would show."""

    running: int
    waiting: int
    used_blocks: int
    capacity_blocks: int
    cached_blocks: int
    preemptions: int
    prefix_queries: int
    """Prompt tokens looked up in the prefix cache since the start."""
    prefix_hits: int
