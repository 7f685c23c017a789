"""Charts as data: what is drawn, without a word about how.

Frozen records; ``plot`` draws them, tests look into them. Axis labels carry the unit. Points that are not finite
are left out when drawn, as a query without an answer has no place on an axis of seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line of a chart."""

    name: str
    points: tuple[tuple[float, float], ...]
    """x and y, in order of x."""
    low: tuple[float, ...] = ()
    """Least y over the seeds of each point; empty where there is no range to show."""
    high: tuple[float, ...] = ()
    marked: bool = False
    """Whether it is the one to look at."""
    bound: bool = False
    """Whether it is what nothing can beat, rather than something that was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A chart of lines over two axes."""

    name: str
    """Of its file and its place in a page: lower case, digits, hyphens."""
    title: str
    x: str
    """Label of the axis, unit included."""
    y: str
    series: tuple[Series, ...]
    note: str = ""
    """What a reader should know to read it."""
    x_log: bool = False
    y_log: bool = False
    shares: bool = False
    """Whether y is a share, from 0 to 1."""
    dots: bool = False
    """Whether each point was measured, and is shown as one."""
    verticals: tuple[tuple[float, str], ...] = ()
    """Places on the x axis to point out, with what they are."""


class Phase(StrEnum):
    """Say what a stretch of a call was."""

    WAITING = "waiting"
    """For a place in an engine."""
    PREFILL = "prefill"
    """From being sent to the first token; the engine's own queue included."""
    DECODE = "decode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A stretch of time in a row of a Gantt chart."""

    row: str
    begin: float
    end: float
    kind: str
    """What its colour stands for."""
    phase: Phase = Phase.DECODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Gantt:
    """A chart of who did what when: a row for each instance."""

    name: str
    title: str
    x: str
    rows: tuple[str, ...]
    """From the top."""
    bars: tuple[Bar, ...]
    note: str = ""
    verticals: tuple[tuple[float, str], ...] = ()
    until: float | None = None
    """Where the x axis ends, so that two charts can be compared; None where the last bar does."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """What there are colours for, in the order they first appear."""
        return tuple(dict.fromkeys(bar.kind for bar in self.bars))


Chart = Lines | Gantt
"""Whatever can be drawn."""


def cumulative(values: Sequence[float], *, most: int = 400) -> tuple[tuple[float, float], ...]:
    """Return the distribution of values: each with the share of values up to it, thinned to ``most`` points."""
    ordered = sorted(values)
    count = len(ordered)
    places = (
        range(count) if count <= most else sorted({round(n * (count - 1) / (most - 1)) for n in range(most)})
    )
    return tuple((ordered[place], (place + 1) / count) for place in places)


def parameter_curve(
    name: str,
    points: Sequence[tuple[float, float]],
    *,
    objective: str,
    chosen: float | None = None,
    in_force: float | None = None,
    low: Sequence[float] = (),
    high: Sequence[float] = (),
) -> Lines:
    """Return the chart of a policy's parameter: what each value of it reaches on an objective (with its unit)."""
    marks = [(value, word) for value, word in ((in_force, "in force"), (chosen, "best")) if value is not None]
    if in_force == chosen is not None:
        marks = [(chosen, "in force, and best")]
    return Lines(
        name=f"{name}-curve",
        title=f"What each {name} reaches",
        x=name,
        y=objective,
        series=(
            Series(
                name=objective, points=tuple(sorted(points)), low=tuple(low), high=tuple(high), marked=True
            ),
        ),
        verticals=tuple(marks),
        dots=True,
    )
