"""The answer book: which answer a prompt gets, and what is wrong with a book."""

from pathlib import Path

import pytest

from hexflow_emulator import AnswerBook, BookError
from hexflow_emulator.book import Unknown

BOOK = """
book: 1
entries:
  - question: How many customers live in Berlin?
    answers:
      candidate:
        - text: first
        - text: second
        - text: third
      correction:
        - {when: "no such column: custmer", text: mended}
        - text: plain correction
      chat:
        - text: talk
  - question: How many customers live in Berlin? And in Paris?
    answers:
      candidate: [{text: both}]
"""


@pytest.fixture
def book(tmp_path: Path) -> AnswerBook:
    path = tmp_path / "book.yaml"
    path.write_text(BOOK)
    return AnswerBook.load(path)


def prompt(
    task: str = "candidate", question: str = "How many customers live in Berlin?", more: str = ""
) -> str:
    return f"<|im_start|>system\nTask: {task}\nschema…\n<|im_end|>\n{more}\nQuestion: {question}\n"


@pytest.mark.parametrize(
    ("seed", "text"), [(0, "first"), (1, "second"), (2, "third"), (3, "first"), (-1, "third")]
)
def test_the_seed_picks_the_answer(book: AnswerBook, seed: int, text: str) -> None:
    assert book.answer(prompt(), seed=seed) == text


def test_samples_of_one_request_differ(book: AnswerBook) -> None:
    assert [book.answer(prompt(), seed=1, sample=sample) for sample in range(3)] == [
        "second",
        "third",
        "first",
    ]


def test_without_a_seed_answers_come_in_turn(book: AnswerBook) -> None:
    assert [book.answer(prompt(), seed=None) for _ in range(4)] == ["first", "second", "third", "first"]


def test_a_correction_is_picked_by_the_error_it_is_for(book: AnswerBook) -> None:
    failed = prompt("correction", more="Error: no such\n column:  CUSTMER")
    assert book.answer(failed, seed=0) == "mended"
    assert book.answer(prompt("correction"), seed=0) == "plain correction"


def test_case_and_blanks_of_a_question_do_not_matter(book: AnswerBook) -> None:
    assert book.answer(prompt(question="how  MANY customers\n live in berlin?"), seed=0) == "first"


def test_the_longest_question_wins(book: AnswerBook) -> None:
    assert book.answer(prompt(question="How many customers live in Berlin? And in Paris?"), seed=0) == "both"


def test_a_prompt_that_names_no_task_is_chat(book: AnswerBook) -> None:
    assert book.answer("How many customers live in Berlin?", seed=0) == "talk"


def test_another_question_is_unknown(book: AnswerBook) -> None:
    assert book.answer(prompt(question="Why?"), seed=0) == Unknown("candidate", None)


def test_a_task_without_answers_is_unknown_and_names_the_question(book: AnswerBook) -> None:
    assert book.answer(prompt("choice"), seed=0) == Unknown("choice", "How many customers live in Berlin?")


def test_the_pattern_of_tasks_can_be_another(tmp_path: Path) -> None:
    path = tmp_path / "book.yaml"
    path.write_text(
        "book: 1\ntaskPattern: '\\[(\\w+)\\]'\nentries: [{question: why, answers: {x: [{text: because}]}}]\n"
    )
    assert AnswerBook.load(path).answer("[x] Why", seed=0) == "because"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read the answer book"),
        ("book: [", "is not YAML"),
        ("\x00", "is not YAML"),
        ("- 1", "the file: "),
        ("book: 2\nentries: []", "book: Input should be less than or equal to 1"),
        ("book: 1", "entries: Field required"),
        ("book: 1\nentries: [{question: why, answers: {x: []}}]", "entries.0.answers.x: "),
        (
            "book: 1\nentries: [{question: why, answers: {x: [{test: y}]}}]",
            "entries.0.answers.x.0.text: Field required",
        ),
        ("book: 1\nentries: []\ntaskPattern: '('", "no regular expression"),
        ("book: 1\nentries: []\ntaskPattern: 'Task'", "has no group"),
    ],
)
def test_a_wrong_book_is_refused_with_the_place(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "book.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BookError, match=message):
        AnswerBook.load(path)
