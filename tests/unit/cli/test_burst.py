import pytest

from hexflow_cli.burst import a_burst, is_right
from hexflow_cli.sample.questions import SampleQuestion, sample_questions
from hexflow_router.answer import Status
from support.answers import an_answer


def a_question(*rows: tuple[str | int | float | None, ...], ordered: bool = False) -> SampleQuestion:
    return SampleQuestion(id="q", tenant="t", text="?", sql="", columns=("a",), rows=rows, ordered=ordered)


def test_the_same_seed_gives_the_same_burst_and_another_seed_another() -> None:
    questions = sample_questions().items
    first = a_burst(questions, count=30, span_seconds=30.0, seed=1)
    assert first == a_burst(questions, count=30, span_seconds=30.0, seed=1)
    assert first != a_burst(questions, count=30, span_seconds=30.0, seed=2)


def test_a_burst_asks_each_question_once_within_its_span() -> None:
    burst = a_burst(sample_questions().items, count=30, span_seconds=30.0, seed=1)
    assert len({asking.question.id for asking in burst}) == 30
    instants = [asking.arrival_seconds for asking in burst]
    assert instants == sorted(instants)
    assert (instants[0], instants[-1] <= 30.0) == (0.0, True)
    assert [asking.number for asking in burst] == list(range(1, 31))


def test_more_questions_than_there_are_give_them_all() -> None:
    assert len(a_burst(sample_questions().items, count=500, span_seconds=1.0, seed=1)) == 30


@pytest.mark.parametrize(
    ("rows", "checked", "ordered", "right"),
    [
        (((1,), (2,)), ((2,), (1,)), False, True),
        (((1,), (2,)), ((2,), (1,)), True, False),
        (((1,), (1,)), ((1,),), False, False),
        (((2,),), ((2.0,),), False, True),
        (((0.1 + 0.2,),), ((0.3,),), False, True),
        (((None,),), (("",),), False, False),
        ((("1",),), ((1,),), False, False),
        (((None,), ("a",), (3,)), ((3,), ("a",), (None,)), False, True),
        ((), (), False, True),
    ],
)
def test_rows_are_compared_as_a_bag_unless_an_order_is_asked_for(
    rows: tuple[tuple[object, ...], ...],
    checked: tuple[tuple[str | int | float | None, ...], ...],
    ordered: bool,
    right: bool,
) -> None:
    assert is_right(an_answer(rows=rows), a_question(*checked, ordered=ordered)) is right


def test_an_answer_that_failed_or_was_cut_off_is_not_right() -> None:
    assert not is_right(an_answer(status=Status.FAILED), a_question((7,)))
    assert not is_right(an_answer(truncated=True), a_question((7,)))
    assert not is_right(an_answer(rows=None), a_question((7,)))
    assert is_right(an_answer(), a_question((7,)))
