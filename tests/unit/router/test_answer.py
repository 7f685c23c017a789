import datetime
import json
from typing import Any

import pytest
from pydantic import ValidationError

from hexflow_router.answer import Answer, Question, Status, utc


def an_answer(**changes: Any) -> Answer:
    values: dict[str, Any] = {
        "id": "q1",
        "workflow": "shop-questions",
        "database": "shop",
        "question": "How many?",
        "status": Status.RUNNING,
        "deadline_seconds": 60.0,
        "seconds": 1.0,
        "policy": "HexGenFlow",
        "created_at": utc(0.0),
    }
    return Answer(**(values | changes))


def test_a_question_is_read_in_camel_case() -> None:
    question = Question.model_validate(
        {"question": "How many?", "deadlineSeconds": 5, "referenceTime": "2026-01-02T03:04:05Z"}
    )
    assert question.deadline_seconds == 5
    assert question.reference_time == datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"question": ""},
        {"question": "  \n"},
        {"question": "a\x00b"},
        {"question": 7},
        {"question": "q", "deadlineSeconds": 0},
        {"question": "q", "deadlineSeconds": -3},
        {"question": "q", "deadlineSeconds": float("nan")},
        {"question": "q", "deadlineSeconds": float("inf")},
        {"question": "q", "deadlineSeconds": 1e300},
        {"question": "q", "deadlineSeconds": "5"},
        {"question": "q", "dedline": 5},
        {"question": "q", "stream": "yes"},
        {"question": "q", "referenceTime": "yesterday"},
    ],
)
def test_a_wrong_question_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        Question.model_validate(wrong)


def test_an_answer_is_written_in_camel_case() -> None:
    written = json.loads(an_answer().encode())
    assert written["deadlineSeconds"] == 60.0
    assert written["createdAt"] == "1970-01-01T00:00:00Z"
    assert written == an_answer().data()
    assert Answer.model_validate_json(an_answer().encode()) == an_answer()
