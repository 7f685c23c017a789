"""The records that pass between a front door and the driver: a request out, one answer back.

A front door builds an ``UpstreamRequest``, hands it to ``driver.release`` and holds an ``Exchange``. Which
instance serves it, when, and after how many tries is decided behind the exchange; what a front door may know
of that is a ``Placement``. Seconds are the router's seconds (emulated ones under ``--time-scale``).
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hexflow_router.errors import ApiError
from hexflow_scheduler import Call, Usage

Headers = Sequence[tuple[str, str]]
"""Header fields in order, names in lower case."""


class CallFailed(ApiError):
    """Say that a call ended without an answer.

    ``status`` is what a client is to be told: 503 when no instance could take it, 502 when those tried failed,
    504 when they did not answer in time, 499 when it was cancelled, else the engine's own 4xx. ``reason`` is
    one of NoInstance, NoInstanceInTime, ContextTooLong, Cancelled, ConnectFailed, FirstByteTimeout,
    IdleTimeout, TotalTimeout, BrokenAnswer, AbortedByEngine, Rubbish, Redirected, EngineError, EngineRefused,
    EngineRefusedKey, InternalError, QueueFull, Stopping.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Tell where a call went and why: what was known when it was sent."""

    call_id: str
    instance_id: str
    pool: str
    gpu_type: str
    urgency: float
    """Seconds by which it was expected to overrun its budget when it was sent; higher is more urgent."""
    predicted_seconds: float
    """Expected seconds on that instance, waiting left out."""
    priority: int | None
    """The engine's ``priority`` it was sent with; None where the engine takes none."""
    attempts: int
    """1 for the first try."""
    sent_at: float
    """Instant it was sent."""
    queued_seconds: float
    """From its release to this sending."""
    demoted: bool = False
    """Whether its query gives way to others, since it cannot be in time any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest:
    """Ask for one call to be made."""

    call: Call
    path: str
    """Path at the engine, e.g. ``/v1/chat/completions``."""
    headers: Headers = ()
    """Fields for the engine; hop-by-hop fields, cookies and the caller's credentials are left out on the way."""
    body: bytes
    """JSON object. Top-level ``priority`` is set or left out for the instance; other bytes go as they are."""
    stream: bool = False
    """Whether the body asks for server-sent events."""
    retry_after_first_byte: bool = False
    """True for calls of our own, whose answer nobody has seen before it is whole."""
    on_placed: Callable[[Placement], None] | None = None
    """Called whenever the call is sent, once for each try; must not block or raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Hold the answer of an engine whose body is still coming."""

    status: int
    headers: Headers
    chunks: AsyncGenerator[bytes]
    """Body as it comes. A stream that breaks ends with an SSE error event and never with a false ``[DONE]``."""
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedReply:
    """Hold a whole answer (status 2xx)."""

    status: int
    headers: Headers
    body: bytes
    usage: Usage
    token_source: str
    """``usage`` where the engine counted, ``estimate`` where it did not say."""
    placement: Placement
    seconds: float
    """From its sending to its last byte."""


class Exchange(Protocol):
    """Stand for one released call until it has ended."""

    @property
    def call(self) -> Call:
        """Return the call as released."""
        ...

    @property
    def placement(self) -> Placement | None:
        """Return where the call was last sent; None while it waits."""
        ...

    async def reply(self) -> Reply:
        """Wait for the first byte of the answer.

        An engine's own refusal (4xx, and its last 5xx when no other instance helps) is returned as a reply.
        Raises CallFailed. A caller that is cancelled while it waits withdraws the call.
        """
        ...

    async def read(self) -> CompletedReply:
        """Wait for the whole answer. Raises CallFailed, for an engine's refusal too. Cancelling withdraws."""
        ...

    def cancel(self) -> None:
        """Withdraw the call: it leaves the queue or is stopped at its engine. Harmless once it has ended."""
        ...
