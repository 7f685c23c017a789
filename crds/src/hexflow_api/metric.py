"""What a metric is called and what to do about it: the rows of the router's and the operator's tables, and their pages."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Metric(NamedTuple):
    """Describe one metric; ``advice`` says what a person does when it looks wrong."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    labels: str
    """Their names, with blanks between."""
    help: str
    advice: str


def metrics_page(of: str, where: str, table: Sequence[Metric]) -> str:
    """Return the reference page of the metrics ``of`` router or operator; ``where`` says where they are read."""
    return "\n".join(_lines(of, where, table)) + "\n"


def _lines(of: str, where: str, table: Sequence[Metric]) -> Iterator[str]:
    yield f"# Metrics of the {of}"
    yield ""
    yield (
        f"<!-- Written by `python -m hexflow_{of}.metrics`; a test compares. Edit the table in `metrics.py`. -->"
    )
    yield ""
    yield where
    for metric in table:
        labels = ", ".join(f"`{label}`" for label in metric.labels.split()) or "none"
        yield ""
        yield f"## `{metric.name}`"
        yield ""
        yield f"{metric.kind.capitalize()}; labels: {labels}. {metric.help}"
        yield ""
        yield f"**What to do about it.** {metric.advice}"
