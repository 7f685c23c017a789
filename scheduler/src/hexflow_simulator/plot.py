"""Drawings of charts, as SVG for a page or PNG for a document. The one module that imports matplotlib.

The colours are Okabe and Ito's, which colour-blind people tell apart, without black and yellow: they stand on a white page
and on a dark one; what is more than they are gets other strokes. In an SVG words and axes take the colour of the text around
it (``currentColor``); a PNG is on white, and has its title in it.
"""

import io
import re
from collections.abc import Sequence
from itertools import cycle, product
from math import inf, isfinite
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from hexflow_simulator.chart import Chart, Gantt, Lines, Phase, Series

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_STYLES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)))
_HATCHES = ("", "////", "....", "xx", "||||")
_INK = "#0b0c0d"
"""A colour that nothing else has: in an SVG it becomes that of the text."""
_FAINT = "#8c8c8c"
_MARKS = ((_FAINT, "-."), (_INK, "--"), (_FAINT, ":"))
"""Colour and style of each place that is pointed out, of the first ones."""
WIDE, NARROW = 8.0, 4.2
"""Inches of a drawing for a page and for a phone; the words in both have the same size."""
_LETTER, _KEY = 0.08, 0.55
"""Inches of a letter in a legend, at the most, and of the line or patch beside it with the gaps."""
_LABEL = 32
"""Letters in a line of an axis' name that fit the height of a drawing, and the width of a narrow one."""
_NUMBERS: tuple[tuple[float, tuple[float, ...]], ...] = (
    (3.0, ()),
    (10.0, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)),
    (400.0, (1.0, 2.0, 5.0)),
    (inf, (1.0,)),
)
"""Which numbers of each tenfold stand at an axis of ratios whose last place is less than so many times its first;
where it is not even thrice that, evenly spaced ones."""
_OPAQUE = {Phase.WAITING: 0.2, Phase.PREFILL: 0.55, Phase.DECODE: 0.95}
_SETTINGS: dict[Any, Any] = {
    "font.size": 10.0,
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": _FAINT,
    "grid.alpha": 0.25,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


def svg(chart: Chart, *, narrow: bool = False) -> str:
    """Return a chart as an ``<svg>`` element for an HTML page: the same text for the same chart, without any address."""
    buffer = io.StringIO()
    with rc_context({**_SETTINGS, "svg.hashsalt": chart.name}):
        figure = _figure(chart, NARROW if narrow else WIDE)
        FigureCanvasSVG(figure)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    return _inline(buffer.getvalue(), chart, "narrow" if narrow else "wide")


def png(chart: Chart, path: Path, *, dots_per_inch: int = 150) -> None:
    """Write a chart as a PNG on white."""
    with rc_context(_SETTINGS):
        figure = _figure(chart, WIDE)
        figure.suptitle(chart.title, fontsize=12)
        FigureCanvasAgg(figure)
        figure.savefig(path, format="png", dpi=dots_per_inch, facecolor="white", metadata={"Software": None})


def _figure(chart: Chart, width: float) -> Figure:
    names = [words for _, words in chart.verticals]
    names += chart.kinds if isinstance(chart, Gantt) else [series.name for series in chart.series]
    columns = _columns(names, width, most=5 if isinstance(chart, Gantt) else 3)
    rows = -(-len(names) // columns)
    plain = (
        1.2 + 0.34 * max(2, len(chart.rows)) if isinstance(chart, Gantt) else 3.6 if width == WIDE else 3.0
    )
    figure = Figure(figsize=(width, plain + 0.22 * rows))
    axes = figure.add_subplot()
    axes.set_xlabel(fill(chart.x, _LABEL if width == NARROW else 2 * _LABEL))
    handles = _draw_gantt(chart, axes) if isinstance(chart, Gantt) else _draw_lines(chart, axes)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=9)
    return figure


def _columns(names: Sequence[str], width: float, *, most: int) -> int:
    """Return how many columns a legend of these names may have in so many inches."""
    for columns in range(min(most, len(names)), 1, -1):
        rows = -(-len(names) // columns)
        longest = (max(map(len, names[start : start + rows])) for start in range(0, len(names), rows))
        if columns * _KEY + _LETTER * sum(longest) <= width:
            return columns
    return 1


def _draw_lines(chart: Lines, axes: Axes) -> list[Artist]:
    axes.set_ylabel(fill(chart.y, _LABEL))
    for is_log, axis, set_scale in (
        (chart.x_log, axes.xaxis, axes.set_xscale),
        (chart.y_log, axes.yaxis, axes.set_yscale),
    ):
        if is_log:
            set_scale("log")
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
    if chart.shares:
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    looks = cycle(product(_STYLES, COLOURS))
    for series in chart.series:
        if series.bound:
            _draw_series(series, axes, colour=_FAINT, style=":", dots=chart.dots)
        else:
            style, colour = next(looks)
            _draw_series(series, axes, colour=colour, style=style, dots=chart.dots)
    _draw_verticals(chart, axes)
    for is_log, axis, (low, high) in (
        (chart.x_log, axes.xaxis, axes.get_xlim()),
        (chart.y_log, axes.yaxis, axes.get_ylim()),
    ):
        if is_log:
            subs = next(subs for most, subs in _NUMBERS if high < low * most)
            axis.set_major_locator(LogLocator(subs=subs, numticks=7) if subs else MaxNLocator(5))
    return list(axes.get_legend_handles_labels()[0])


def _draw_verticals(chart: Chart, axes: Axes) -> list[Line2D]:
    return [
        axes.axvline(place, color=colour, linewidth=1.2, linestyle=style, label=words)
        for (place, words), (colour, style) in zip(chart.verticals, cycle(_MARKS), strict=False)
    ]


def _draw_series(
    series: Series, axes: Axes, *, colour: str, style: str | tuple[int, tuple[int, ...]], dots: bool
) -> None:
    seen = [place for place, point in enumerate(series.points) if all(map(isfinite, point))]
    xs = [series.points[place][0] for place in seen]
    axes.plot(
        xs,
        [series.points[place][1] for place in seen],
        color=colour,
        linestyle=style,
        linewidth=2.6 if series.marked else 1.4,
        marker="o" if dots else "",
        markersize=4,
        label=series.name,
        zorder=3 if series.marked else 2,
    )
    if series.low and series.high:
        ranged = [n for n in seen if isfinite(series.low[n]) and isfinite(series.high[n])]
        axes.fill_between(
            [series.points[n][0] for n in ranged],
            [series.low[n] for n in ranged],
            [series.high[n] for n in ranged],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )


def _draw_gantt(chart: Gantt, axes: Axes) -> list[Artist]:
    places = {row: number for number, row in enumerate(chart.rows)}
    looks = dict(zip(chart.kinds, cycle(product(_HATCHES, COLOURS)), strict=False))
    lanes = _lanes(chart)
    for bar, (lane, count) in lanes.items():
        height = 0.8 / count
        hatch, colour = looks[chart.bars[bar].kind]
        axes.barh(
            places[chart.bars[bar].row] - 0.4 + (lane + 0.5) * height,
            chart.bars[bar].end - chart.bars[bar].begin,
            left=chart.bars[bar].begin,
            height=height * 0.88,
            facecolor=colour,
            edgecolor=_INK,
            hatch=hatch,
            alpha=_OPAQUE[chart.bars[bar].phase],
            linewidth=0,
        )
    axes.set_yticks(range(len(chart.rows)), list(chart.rows))
    axes.set_ylim(len(chart.rows) - 0.5, -0.5)
    axes.set_xlim(0, chart.until)
    axes.grid(axis="y", visible=False)
    patches = [
        Patch(facecolor=colour, edgecolor=_INK, hatch=hatch, linewidth=0, label=kind)
        for kind, (hatch, colour) in looks.items()
    ]
    return [*patches, *_draw_verticals(chart, axes)]


def _lanes(chart: Gantt) -> dict[int, tuple[int, int]]:
    """Return for each bar its lane within its row and the number of lanes there: bars of a row never overlap.

    The phases of one call touch each other and so share a lane.
    """
    found: dict[int, tuple[int, int]] = {}
    for row in chart.rows:
        ends: list[float] = []
        lanes: dict[int, int] = {}
        mine = sorted(
            (number for number, bar in enumerate(chart.bars) if bar.row == row),
            key=lambda number: (chart.bars[number].begin, chart.bars[number].end),
        )
        for number in mine:
            bar = chart.bars[number]
            free = [lane for lane, end in enumerate(ends) if end <= bar.begin]
            # Of the free lanes the one whose last bar ends just here: the same call's phase before.
            lane = max(free, key=lambda lane: ends[lane], default=len(ends))
            if lane == len(ends):
                ends.append(0.0)
            ends[lane] = bar.end
            lanes[number] = lane
        found.update({number: (lane, len(ends)) for number, lane in lanes.items()})
    return found


def _inline(text: str, chart: Chart, width: str) -> str:
    """Return the ``<svg>`` of a file for a page that has several: its ids its own, no addresses, ink that follows the text."""
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    own = f"{chart.name}-{width}-"
    text = re.sub(r'\bid="', f'id="{own}', text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{own}", text)
    text = text.replace(_INK, "currentColor")
    opening, rest = text.split(">", 1)
    opening = re.sub(r'\s(width|height)="[^"]*"', "", opening)
    return f'{opening} class="{width}" role="img" aria-label="{_escaped(_spoken(chart))}">{rest}'


def _spoken(chart: Chart) -> str:
    """Return what a chart is for who does not see it; its figures are in the tables."""
    if isinstance(chart, Gantt):
        return f"{chart.title}. Bars over {chart.x}, a row for each of {', '.join(chart.rows)}: {', '.join(chart.kinds)}."
    names = ", ".join(series.name for series in chart.series)
    return f"{chart.title}. Lines of {chart.y}, over {chart.x}: {names}."


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def all_svgs(charts: Sequence[Chart]) -> list[tuple[Chart, tuple[str, str]]]:
    """Return each chart with two ``<svg>`` elements, the wide and the narrow one; raises ValueError where two have one name."""
    names = [chart.name for chart in charts]
    if len(set(names)) != len(names):
        raise ValueError(f"charts of one page have names of their own, not {', '.join(names)}")
    return [(chart, (svg(chart), svg(chart, narrow=True))) for chart in charts]
