"""The answer book: what an emulated model says to the questions it knows.

YAML, version 1: a pattern that finds the task in a prompt, and entries of a question with the answers of
each task. An answer is picked by the request's seed, so that candidates differ and a run repeats itself;
a correction is picked by the error that its ``when`` quotes.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hexflow_emulator.errors import BookError

NO_TASK = "chat"
"""Task of a prompt that names none."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BookAnswer(_Model):
    """One text the model may say."""

    text: str
    when: str | None = None
    """Words that must occur in the prompt for it to be said."""


class BookEntry(_Model):
    """A question and what is said to it, task by task."""

    question: Annotated[str, Field(min_length=3)]
    answers: dict[str, Annotated[list[BookAnswer], Field(min_length=1)]]


class BookFile(_Model):
    """The file as it is written."""

    book: Annotated[int, Field(ge=1, le=1)]
    taskPattern: str = "(?m)^Task: ([a-z-]+)$"  # noqa: N815
    entries: list[BookEntry]


@dataclass(frozen=True, slots=True)
class Unknown:
    """Say that the book has nothing, and what was looked for."""

    task: str
    question: str | None
    """The question that was found, where only the task's answers are missing."""


class AnswerBook:
    """Find answers in a book."""

    def __init__(self, file: BookFile, *, path: str) -> None:
        self.path = path
        try:
            self._task_pattern = re.compile(file.taskPattern)
        except re.error as error:
            raise BookError(f"{path}: taskPattern is no regular expression: {error}") from error
        if self._task_pattern.groups < 1:
            raise BookError(f"{path}: taskPattern has no group; write ([a-z-]+) where the task's name stands")
        # The longest question first, so that one contained in another does not hide it.
        self._entries = sorted(
            ((_plain(entry.question), entry) for entry in file.entries), key=lambda pair: -len(pair[0])
        )
        self._turns: defaultdict[tuple[str, str], int] = defaultdict(int)

    def __len__(self) -> int:
        return len(self._entries)

    @classmethod
    def load(cls, path: Path) -> "AnswerBook":
        """Read a book. Raises BookError with the file, the place and what is wrong there."""
        try:
            raw = YAML(typ="safe", pure=True).load(path.read_bytes())
            return cls(BookFile.model_validate(raw), path=str(path))
        except OSError as error:
            raise BookError(f"cannot read the answer book {path}: {error.strerror}") from error
        except (YAMLError, UnicodeDecodeError) as error:
            raise BookError(f"{path} is not YAML: {error}") from error
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the file"
            raise BookError(f"{path}: {place}: {first['msg']}") from error

    def answer(self, prompt: str, *, seed: int | None, sample: int = 0) -> str | Unknown:
        """Return what the model says to a prompt, or that it does not know."""
        found = self._task_pattern.search(prompt)
        task = (found[1] if found else None) or NO_TASK
        plain = _plain(prompt)
        entry = next((entry for question, entry in self._entries if question in plain), None)
        if entry is None:
            return Unknown(task, None)
        answers = entry.answers.get(task, [])
        conditional = [answer for answer in answers if answer.when is not None]
        for answer in conditional:
            if answer.when is not None and _plain(answer.when) in plain:
                return answer.text
        choices = [answer for answer in answers if answer.when is None]
        if not choices:
            return Unknown(task, entry.question)
        if seed is None:
            turn = self._turns[entry.question, task]
            self._turns[entry.question, task] += 1
        else:
            turn = seed + sample
        return choices[turn % len(choices)].text


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
