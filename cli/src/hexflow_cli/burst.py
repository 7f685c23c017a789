"""A burst: who asks which sample question when, the same for every policy; and asking it.

The order and the instants come from a seed. Whether rows are right is decided against the checked answers that
travel with the sample shop.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from random import Random
from time import monotonic
from typing import Any

from hexflow_cli.board import BurstBoard
from hexflow_cli.client import RouterClient
from hexflow_cli.exitcode import CommandError
from hexflow_cli.report import Outcome
from hexflow_cli.sample.questions import SampleQuestion
from hexflow_cli.watch import QueryWatch
from hexflow_router.answer import Answer, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Say that a question is asked at an instant of the burst."""

    number: int
    """1 for the first."""
    arrival_seconds: float
    """Emulated seconds from the start of the burst."""
    question: SampleQuestion


def a_burst(
    questions: Sequence[SampleQuestion], *, count: int, span_seconds: float, seed: int
) -> tuple[Asking, ...]:
    """Return `count` different questions in a random order, at random instants within the span."""
    random = Random(seed)  # noqa: S311 - a demo's order is no secret
    chosen = random.sample(list(questions), k=min(count, len(questions)))
    instants = sorted(random.uniform(0.0, span_seconds) for _ in chosen)
    first = instants[0] if instants else 0.0
    return tuple(
        Asking(number=number, arrival_seconds=instant - first, question=question)
        for number, (instant, question) in enumerate(zip(instants, chosen, strict=True), start=1)
    )


async def ask_all(
    burst: Sequence[Asking],
    *,
    url: str,
    workflow: str,
    api_keys: Mapping[str, str],
    reference_time: datetime,
    time_scale: float,
    board: BurstBoard,
    on_outcome: Callable[[Outcome], None],
) -> list[Outcome]:
    """Ask every question at its instant, each as its tenant, and return what became of them, in order."""
    start = monotonic()

    async def one(asking: Asking) -> Outcome:
        await asyncio.sleep(start + asking.arrival_seconds / time_scale - monotonic())
        asked = monotonic()
        question = asking.question
        watch = QueryWatch(question=question.text, elapsed=lambda: (monotonic() - asked) * time_scale)
        board.ask(asking.number, tenant=question.tenant, watch=watch)
        answer, failure = None, ""
        async with RouterClient(url, api_key=api_keys.get(question.tenant)) as client:
            try:
                answer = await _answer(client, workflow, _body(question, reference_time), watch)
            except CommandError as error:
                failure = str(error)
        outcome = Outcome(
            number=asking.number,
            tenant=question.tenant,
            question=question.text,
            arrival_seconds=asking.arrival_seconds,
            answer=answer,
            failure=failure,
            right=answer is not None and is_right(answer, question),
        )
        board.answer(outcome)
        on_outcome(outcome)
        return outcome

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(asking)) for asking in burst]
    return [task.result() for task in tasks]


def is_right(answer: Answer, checked: SampleQuestion) -> bool:
    """Return whether an answer's rows are the checked ones: in order where the question asks for an order."""
    if answer.status is not Status.SUCCEEDED or answer.rows is None or answer.truncated:
        return False
    ours = [_comparable(row) for row in answer.rows]
    theirs = [_comparable(row) for row in checked.rows]
    return ours == theirs if checked.ordered else sorted(ours) == sorted(theirs)


def _body(question: SampleQuestion, reference_time: datetime) -> dict[str, Any]:
    evidence = {"evidence": question.evidence} if question.evidence else {}
    return {"question": question.text, "referenceTime": reference_time.isoformat(), **evidence}


async def _answer(
    client: RouterClient, workflow: str, body: Mapping[str, Any], watch: QueryWatch
) -> Answer | None:
    async with aclosing(client.ask(workflow, body)) as events:
        async for event in events:
            data = json.loads(event.data)
            watch.take(event.name, data)
            if event.name == "query.finished":
                return Answer.model_validate(data, extra="ignore")
    return None


def _comparable(row: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Return a row in a form that can be compared and sorted: 2 equals 2.0, NULL is not an empty text."""
    return tuple(_cell(value) for value in row)


def _cell(value: Any) -> tuple[str, str]:
    if value is None:
        return ("null", "")
    if isinstance(value, int | float):
        return ("number", f"{round(float(value), 6):.6f}")
    return ("text", str(value))
