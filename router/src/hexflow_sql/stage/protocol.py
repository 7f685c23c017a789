"""What a stage is, and what a workflow may set of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from hexflow_sql.completion import LanguageModel
from hexflow_sql.database.protocol import Database
from hexflow_sql.draft import Draft
from hexflow_sql.limits import Limits
from hexflow_sql.stage.events import Observer

TimeLeft = Callable[[], float]
"""Seconds until the query's deadline; negative once it is late, ``inf`` where it has none."""

Sleep = Callable[[float], Awaitable[None]]
"""Wait for seconds of the clock that ``TimeLeft`` counts in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSettings:
    """Hold what a workflow says about one stage. What one kind does not use, it ignores."""

    name: str
    fan_out: int = 4
    """CandidateGeneration: requests released together. Evaluation: most unit tests."""
    samples: int = 1
    """Completions of each of those requests (OpenAI's ``n``)."""
    max_rounds: int = 3
    """SelfCorrection: most corrections of one candidate."""
    max_tokens: int | None = None
    """Bound on one output; None takes the kind's own."""
    temperature: float | None = None
    """None takes the kind's own: 0, and 0.7 for candidates after the first."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request's body, in OpenAI's spelling."""
    on_timeout: str = "Skip"
    """``Skip``: late stages do the least that still gives an answer. ``Fail``: they end with StageTimedOut."""
    sample_values: bool = True
    """Whether prompts show sample values and the values that the question mentions."""
    schema_tokens: int = 12_000
    """Largest schema, in estimated tokens, that a prompt shows whole; larger ones are pruned by linking."""
    limits: Limits = field(default_factory=Limits)
    """Bounds on one statement; its seconds shrink further with the time left."""


class Stage(Protocol):
    """Take a draft one step further."""

    @property
    def name(self) -> str:
        """Its name in the workflow."""
        ...

    @property
    def kind(self) -> str:
        """SchemaLinking, CandidateGeneration, SelfCorrection or Evaluation."""
        ...

    async def run(
        self,
        draft: Draft,
        *,
        model: LanguageModel,
        database: Database,
        time_left: TimeLeft,
        observe: Observer,
        sleep: Sleep | None = None,
    ) -> Draft:
        """Return the next draft.

        ``sleep`` waits on the clock of ``time_left``; asyncio's own where None. Raises NoAnswer (a typed
        outcome), CompletionError, DatabaseUnavailable. Cancelling withdraws every request and statement.
        """
        ...
