"""The questions of the demo, with the answers that somebody checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

Cell = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleQuestion:
    """Hold a question about the sample shop and its answer."""

    id: str
    tenant: str
    """Who asks: a tenant of the laptop's workflow."""
    text: str
    evidence: str = ""
    """What the asker knows of the data."""
    tags: tuple[str, ...] = ()
    """``hard``: wrong ways to answer it look right."""
    sql: str
    """One statement that answers it, for readers; other statements may do so too."""
    columns: tuple[str, ...]
    """Names for the answer's columns; a right statement may choose others."""
    rows: tuple[tuple[Cell, ...], ...]
    ordered: bool = False
    """Whether the question asks for an order; otherwise rows are compared as a bag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleQuestions:
    """Hold all questions and the instant at which they are asked."""

    reference_time: datetime
    items: tuple[SampleQuestion, ...]


@cache
def sample_questions() -> SampleQuestions:
    """Read the questions that travel with this package."""
    text = files(__package__).joinpath("questions.yaml").read_text("utf-8")
    content: Mapping[str, Any] = YAML(typ="safe", pure=True).load(text)
    return SampleQuestions(
        reference_time=datetime.fromisoformat(str(content["referenceTime"])),
        items=tuple(_question(item) for item in content["items"]),
    )


def _question(item: Mapping[str, Any]) -> SampleQuestion:
    rows: Sequence[Sequence[Cell]] = item["rows"]
    return SampleQuestion(
        id=item["id"],
        tenant=item["tenant"],
        text=item["question"],
        evidence=item.get("evidence", ""),
        tags=tuple(item.get("tags", ())),
        sql=item["sql"],
        columns=tuple(item["columns"]),
        rows=tuple(tuple(row) for row in rows),
        ordered=item.get("ordered", False),
    )
