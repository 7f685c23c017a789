"""A call: one request to a language model, and what the kernel may know of it.

A call never holds the text of its prompt: the kernel sees counts, names, instants and hashes.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixBlock:
    """Name a leading part of a prompt that other calls may share (a template, a schema, a question)."""

    key: str
    """Hash of the text from the start of the prompt to the end of this block."""
    tokens: int
    """Tokens of this block alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Describe a ready call to the kernel.

    Instants are seconds since the epoch; durations are seconds; lengths are tokens.
    """

    call_id: str
    query_id: str
    """The query it works for; a call without a query is a query of one call and repeats its own id."""
    workflow: str = ""
    tenant: str = ""
    tenant_weight: float = 1.0
    """The tenant's share against that of others, where a queue rule looks at shares."""
    stage: str = ""
    """Name of the stage in its workflow; empty for a plain call."""
    model: str
    """The model it must be served by."""
    pools: frozenset[str] | None = None
    """Pools that may serve it; None admits every pool."""
    prompt_tokens: int
    max_tokens: int
    """Upper bound on the output of one sample."""
    samples: int = 1
    """Completions asked for in this one request (OpenAI's ``n``)."""
    prefix: tuple[PrefixBlock, ...] = ()
    query_arrival: float
    deadline: float | None = None
    """End-to-end deadline of its query; None where nobody stated one."""
    expires: float | None = None
    """Instant from which its answer is of no use to anybody; None where that is the deadline."""
    budget_seconds: float | None = None
    """Share of the time left that this call was given at its release (``budget.py``)."""
    optional: bool = False
    """Whether its stage can do without it once another of the stage's calls is answered."""
    round: int = 0
    """How many calls of its chain came before it in its stage."""
    sibling: int = 0
    """Its place among the calls released together."""


RestClass = tuple[str, str, str, int]
"""What tells apart how long a query goes on after a call: workflow, stage, model, round (``ROUNDS_APART`` at most)."""
ROUNDS_APART = 2
"""From this round on a chain's calls are of one class: later rounds are rare, and much alike."""


def rest_class(call: Call) -> RestClass:
    """Return the class of a call by what comes after it."""
    return call.workflow, call.stage, call.model, min(call.round, ROUNDS_APART)


def expiry(call: Call) -> float | None:
    """Return the instant from which nobody wants the call's answer; None for never."""
    return call.deadline if call.expires is None else call.expires


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Report what a finished call really took, as the engine counted it."""

    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None = None
    """Prompt tokens that the engine found in its prefix cache; None where it does not say."""
    first_token_seconds: float | None = None
    """Seconds from the send to the first token, for the event log; None where the reply was not streamed."""
