"""The sample shop: a database of our own, thirty questions with checked answers, and an answer book.

It is what ``hexflow demo`` and ``hexflow up`` show without anybody's data. It knows neither the router nor
the emulator: it builds a file and names two others.
"""

from pathlib import Path
from typing import Final

from hexflow_cli.sample.questions import SampleQuestion, SampleQuestions, sample_questions
from hexflow_cli.sample.shop import build_shop, content_hash

BOOK: Final = Path(__file__).with_name("book.yaml")
"""The answer book of the emulated models."""

__all__ = ["BOOK", "SampleQuestion", "SampleQuestions", "build_shop", "content_hash", "sample_questions"]
