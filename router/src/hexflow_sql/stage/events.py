"""What stages tell whoever watches, while they run."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesLinked:
    """Linking found what the question is about."""

    stage: str
    tables: tuple[str, ...]
    values: int
    """Values of the database found in the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateExtracted:
    """A model's text was read: it held a statement, or why not."""

    stage: str
    candidate: int
    round: int
    sql: str | None
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementTried:
    """A statement ran, or was refused, or failed."""

    stage: str
    candidate: int
    round: int
    sql: str
    rows: int | None
    """Rows it gave; None when it failed."""
    truncated: bool
    error: str | None
    reason: str | None
    seconds: float
    reused: bool
    """Whether the same text had run before for this query, so that the database did nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsCompared:
    """Candidates were grouped by equal results."""

    stage: str
    clusters: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTestJudged:
    """A unit test was put to the candidates."""

    stage: str
    test: str
    passed: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSkipped:
    """A stage left something out."""

    stage: str
    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateChosen:
    """A candidate was chosen to be the answer."""

    stage: str
    candidate: int
    votes: int
    passed: int
    why: str


Event = (
    TablesLinked
    | CandidateExtracted
    | StatementTried
    | ResultsCompared
    | UnitTestJudged
    | PartSkipped
    | CandidateChosen
)

Observer = Callable[[Event], None]
"""Told each event as it happens, on the event loop; must neither block nor raise."""


def nobody(_event: Event) -> None:
    """Watch nothing."""
