"""What an emulated model says: from its answer book, or words without meaning of a drawn length.

It never invents an answer: outside its book it says that it knows only its book.
"""

from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Protocol

from hexflow_emulator.book import AnswerBook
from hexflow_emulator.lengths import Lengths
from hexflow_emulator.tokens import count, size

WORDS = [
    "row",
    "key",
    "set",
    "sum",
    "join",
    "last",
    "next",
    "part",
    "each",
    "page",
    "line",
    "form",
    "case",
    "unit",
    "list",
    "name",
    "code",
    "rank",
    "step",
    "plan",
    "date",
    "week",
    "year",
    "hour",
    "open",
    "left",
    "side",
    "base",
    "true",
    "null",
    "fact",
    "mean",
    "view",
    "root",
    "leaf",
    "node",
    "path",
    "tail",
    "head",
]
"""Filler: with its blank each word is nearly five bytes."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """Hold a whole completion before it is spoken: its text and its length in tokens."""

    text: str
    tokens: int


class Speech(Protocol):
    """Say something to a prompt."""

    def say(self, prompt: str, *, seed: int | None, sample: int) -> Utterance:
        """Return the whole completion of one sample."""
        ...


def filler(tokens: int, *, seed: str) -> str:
    """Return words without meaning that take exactly so many tokens, the same for the same seed."""
    random = Random(int.from_bytes(blake2b(seed.encode(), digest_size=8).digest()))  # noqa: S311
    end = size(tokens)
    words: list[str] = []
    length = 0
    while length < end:
        words.append(random.choice(WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)[:end]


class BookSpeech:
    """Say what the book has."""

    def __init__(self, book: AnswerBook) -> None:
        self._book = book

    def say(self, prompt: str, *, seed: int | None, sample: int) -> Utterance:
        """Return the book's answer, or the sentence that says there is none."""
        answer = self._book.answer(prompt, seed=seed, sample=sample)
        if isinstance(answer, str):
            return Utterance(answer, count(answer))
        missing = (
            f" The book has this question but no answer for the task {answer.task!r}."
            if answer.question
            else ""
        )
        text = (
            f"This emulated model knows only the questions of its answer book ({self._book.path})."
            f"{missing} Plug in a real engine with `endpoints:` in the GPUPool to have this one answered."
        )
        return Utterance(text, count(text))


class NoBookSpeech:
    """Say that there is no book."""

    def say(self, prompt: str, *, seed: int | None, sample: int) -> Utterance:
        """Return the sentence."""
        text = (
            "This emulated model was started without an answer book (--book FILE), so it has nothing to say. "
            "Plug in a real engine with `endpoints:` in the GPUPool to have questions answered."
        )
        return Utterance(text, count(text))


class FillerSpeech:
    """Say words without meaning, as many as a distribution draws."""

    def __init__(self, lengths: Lengths, *, seed: int) -> None:
        self._lengths = lengths
        self._random = Random(seed)  # noqa: S311

    def say(self, prompt: str, *, seed: int | None, sample: int) -> Utterance:
        """Return filler; with a seed the same prompt gets the same."""
        if seed is None:
            tokens, key = self._lengths.draw(self._random), str(self._random.random())
        else:
            key = f"{seed + sample}:{prompt}"
            digest = blake2b(key.encode(), digest_size=8).digest()
            tokens = self._lengths.draw(Random(int.from_bytes(digest)))  # noqa: S311
        return Utterance(filler(tokens, seed=key), tokens)
