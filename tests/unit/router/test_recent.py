from typing import Any

import pytest

from hexflow_router.answer import Status
from hexflow_router.query import Ending
from hexflow_router.recent import LEAST_FOR_P95, WINDOW_SECONDS, RecentQuestions


class _Workflow:
    name = "shop"


class _Query:
    def __init__(self, *, seconds: float, status: Status, at: float) -> None:
        self.workflow = _Workflow()
        self.arrival = at - seconds
        self.deadline_seconds = 10.0
        self.ending = Ending(status=status, at=at)


def noted(*seconds: float, status: Status = Status.SUCCEEDED, at: float = 1000.0) -> RecentQuestions:
    recent = RecentQuestions()
    note(recent, *seconds, status=status, at=at)
    return recent


def note(
    recent: RecentQuestions, *seconds: float, status: Status = Status.SUCCEEDED, at: float = 1000.0
) -> None:
    for each in seconds:
        query: Any = _Query(seconds=each, status=status, at=at)
        recent.note(query)


def test_the_95th_of_100_is_told_and_the_share_in_time() -> None:
    recent = noted(*(float(each) for each in range(1, 101)))
    assert recent.p95_seconds("shop", 1000.0) == pytest.approx(95.0)
    assert recent.attainment("shop", 1000.0) == pytest.approx(0.10)


def test_of_few_questions_there_is_no_percentile() -> None:
    assert noted(*[1.0] * (LEAST_FOR_P95 - 1)).p95_seconds("shop", 1000.0) is None
    assert noted(*[1.0] * LEAST_FOR_P95).p95_seconds("shop", 1000.0) == pytest.approx(1.0)
    assert RecentQuestions().attainment("shop", 1000.0) is None


@pytest.mark.parametrize("status", [Status.FAILED, Status.DEADLINE_EXCEEDED])
def test_a_question_without_an_answer_is_late_without_end(status: Status) -> None:
    recent = noted(*[1.0] * 19)
    note(recent, 1.0, status=status)
    assert recent.attainment("shop", 1000.0) == pytest.approx(0.95)
    assert recent.p95_seconds("shop", 1000.0) == pytest.approx(1.0)
    note(recent, 1.0, status=status)
    assert recent.p95_seconds("shop", 1000.0) is None


def test_one_that_nobody_wanted_any_more_says_nothing() -> None:
    assert noted(1.0, status=Status.CANCELLED).attainment("shop", 1000.0) is None


def test_what_is_long_ago_no_longer_counts() -> None:
    recent = noted(100.0, at=0.0)
    note(recent, 1.0, at=1.0 + WINDOW_SECONDS)
    assert recent.attainment("shop", 1.0 + WINDOW_SECONDS) == pytest.approx(1.0)
