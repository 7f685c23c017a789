"""What the stages hand on: the question, what was found for it so far, and what was left out.

A draft never changes; a stage returns a new one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hexflow_sql.errors import AllCandidatesFailed, NoStatement, Unanswerable
from hexflow_sql.question import Question
from hexflow_sql.result import Result
from hexflow_sql.schema import Schema
from hexflow_sql.values import ValueMatch

QUOTED_CHARACTERS = 300
"""How much of a model's text an error quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Hold one way to answer, as far as it has come."""

    index: int
    """Its place among the candidates, from 0; prompts and people count from 1."""
    sql: str | None = None
    """Its statement as the model wrote it; None where its text held none."""
    result: Result | None = None
    error: str | None = None
    """Why its statement gave no rows."""
    reason: str | None = None
    """The CamelCase word for ``error``."""
    refusal: str | None = None
    """What the model said instead of a statement: no SQL can answer this."""
    rounds: int = 0
    """Corrections asked for."""
    votes: int = 0
    """Candidates with the same result, itself among them."""
    passed: int = 0
    """Unit tests passed."""
    text: str = ""
    """The model's last text, capped."""

    @property
    def usable(self) -> bool:
        """Whether it has rows."""
        return self.result is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Say what a stage left out, and why."""

    stage: str
    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Hold everything known about a question between two stages."""

    question: Question
    schema: Schema
    linked: Mapping[str, tuple[str, ...]] | None = None
    """Tables and columns that the question is about; None before linking."""
    matches: tuple[ValueMatch, ...] = ()
    """Values of the database that the question mentions."""
    candidates: tuple[Candidate, ...] = ()
    tests: tuple[str, ...] = ()
    """Unit tests that told the candidates apart."""
    chosen: int | None = None
    """Index of the candidate that answers."""
    skipped: tuple[Skipped, ...] = ()

    def skip(self, stage: str, what: str, why: str) -> "Draft":
        """Note what was left out."""
        return replace(self, skipped=(*self.skipped, Skipped(stage=stage, what=what, why=why)))

    def with_candidates(self, candidates: tuple[Candidate, ...]) -> "Draft":
        """Replace the candidates."""
        return replace(self, candidates=candidates)


def settle(draft: Draft) -> Candidate:
    """Return the chosen candidate, or the first one with rows where no stage chose.

    Raises Unanswerable, NoStatement or AllCandidatesFailed, with the beginning of a model's text.
    """
    if draft.chosen is not None:
        return draft.candidates[draft.chosen]
    usable = [candidate for candidate in draft.candidates if candidate.usable]
    if usable:
        return max(usable, key=lambda candidate: (candidate.passed, candidate.votes, -candidate.index))
    raise_no_answer(draft)
    raise AllCandidatesFailed(
        "There are statements, but no stage has run one: add SelfCorrection or Evaluation."
    )


def raise_no_answer(draft: Draft) -> None:
    """Raise what fits candidates without rows; return if one of them may still get some."""
    with_sql = [entry for entry in draft.candidates if entry.sql is not None and entry.refusal is None]
    refusals = [candidate for candidate in draft.candidates if candidate.refusal is not None]
    without = len(draft.candidates) - len(with_sql)
    if len(refusals) > len(with_sql) and 2 * len(refusals) > without:
        raise Unanswerable(
            f"No SQL over this schema answers the question: {quote(refusals[0].refusal or '')}"
        )
    if not with_sql:
        text = next((candidate.text for candidate in draft.candidates if candidate.text.strip()), "")
        said = f"the model said: {quote(text)}" if text else "the model said nothing"
        raise NoStatement(f"No candidate holds an SQL statement; {said}")
    if all(candidate.error is not None for candidate in with_sql):
        raise AllCandidatesFailed(
            f"All {len(with_sql)} statements fail, the first with: {quote(with_sql[0].error or '')}"
        )


def quote(text: str) -> str:
    """Shorten a model's text for a message."""
    flat = " ".join(text.split())
    return flat if len(flat) <= QUOTED_CHARACTERS else flat[: QUOTED_CHARACTERS - 1] + "…"
