"""What an emulated model says, and that it never invents an answer."""

from pathlib import Path

import pytest

from hexflow_emulator import AnswerBook, Lengths
from hexflow_emulator.speech import BookSpeech, FillerSpeech, NoBookSpeech, filler
from hexflow_emulator.tokens import count


@pytest.fixture
def speech(tmp_path: Path) -> BookSpeech:
    path = tmp_path / "book.yaml"
    path.write_text("book: 1\nentries: [{question: How many?, answers: {chat: [{text: Seven of them.}]}}]\n")
    return BookSpeech(AnswerBook.load(path))


def test_it_says_what_the_book_says(speech: BookSpeech) -> None:
    said = speech.say("How many?", seed=0, sample=0)
    assert (said.text, said.tokens) == ("Seven of them.", count("Seven of them."))


def test_outside_the_book_it_says_what_it_is_and_what_to_do(speech: BookSpeech) -> None:
    text = speech.say("Why?", seed=0, sample=0).text
    assert text.startswith("This emulated model knows only the questions of its answer book (")
    assert "book.yaml" in text
    assert "plug in a real engine with `endpoints:`" in text.lower()


def test_a_missing_task_is_named(speech: BookSpeech) -> None:
    assert "no answer for the task 'choice'" in speech.say("Task: choice\nHow many?", seed=0, sample=0).text


def test_without_a_book_it_says_so() -> None:
    assert "without an answer book" in NoBookSpeech().say("How many?", seed=0, sample=0).text


@pytest.mark.parametrize("tokens", [1, 2, 17, 400])
def test_filler_takes_exactly_its_tokens(tokens: int) -> None:
    assert count(filler(tokens, seed="x")) == tokens


def test_filler_repeats_itself_with_its_seed() -> None:
    speech = FillerSpeech(Lengths.parse("uniform:5:50"), seed=1)
    first, again = (speech.say("p", seed=3, sample=0) for _ in range(2))
    assert first == again
    assert first != speech.say("p", seed=3, sample=1)
    assert first != speech.say("q", seed=3, sample=0)
    assert speech.say("p", seed=4, sample=0) == speech.say("p", seed=3, sample=1)


def test_two_instances_with_one_seed_say_the_same() -> None:
    one, two = (FillerSpeech(Lengths.parse("exponential:90"), seed=5) for _ in range(2))
    assert [one.say("p", seed=None, sample=0) for _ in range(9)] == [
        two.say("p", seed=None, sample=0) for _ in range(9)
    ]
