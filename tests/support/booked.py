"""A language model that reads from an answer book, and a question run through the four stages with it.

The book is looked up as the emulator does it, over the very prompt that a request's body renders to; only
HTTP, the clock and the scheduler are left out.
"""

import json
import math
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

from hexflow_emulator.book import AnswerBook
from hexflow_emulator.protocol import read
from hexflow_emulator.tokens import count
from hexflow_sql import (
    Candidate,
    Completion,
    CompletionError,
    CompletionRequest,
    Database,
    Draft,
    Event,
    Question,
    StageSettings,
    build_stage,
    messages,
    settle,
)

STAGES = ("SchemaLinking", "CandidateGeneration", "SelfCorrection", "Evaluation")


@dataclass(slots=True)
class BookModel:
    """Answer from a book; what was asked is kept."""

    book: AnswerBook
    requests: list[CompletionRequest] = field(default_factory=list)

    def release(self, requests: Sequence[CompletionRequest], /) -> Sequence[Awaitable[Completion]]:
        self.requests += requests
        return [self._complete(request) for request in requests]

    async def _complete(self, request: CompletionRequest) -> Completion:
        body = json.dumps({"messages": messages(request.blocks)}).encode()
        (prompt,) = read(body, chat=True).prompts
        texts = []
        for sample in range(request.samples):
            text = self.book.answer(prompt.text, seed=request.seed, sample=sample)
            if not isinstance(text, str):
                raise CompletionError("NotInTheBook", f"the book has nothing for {text}")
            texts.append(text)
        lengths = [count(text) for text in texts]
        return Completion(
            texts=tuple(texts),
            finish_reasons=tuple("stop" if length <= request.max_tokens else "length" for length in lengths),
            prompt_tokens=count(prompt.text),
            output_tokens=sum(lengths),
        )

    def tasks(self) -> list[str]:
        """Return the task of each request, in order."""
        return [request.task for request in self.requests]


@dataclass(slots=True, kw_only=True)
class Run:
    """Hold what came of a question."""

    draft: Draft
    answer: Candidate
    model: BookModel
    events: list[Event]


async def run_question(question: Question, *, book: AnswerBook, database: Database) -> Run:
    """Run the paper's four stages without a deadline. Raises NoAnswer."""
    model = BookModel(book)
    events: list[Event] = []
    draft = Draft(question=question, schema=await database.schema())
    for kind in STAGES:
        stage = build_stage(kind, StageSettings(name=kind))
        draft = await stage.run(
            draft, model=model, database=database, time_left=lambda: math.inf, observe=events.append
        )
    return Run(draft=draft, answer=settle(draft), model=model, events=events)
