"""Drawings stand in a page of their own accord, light or dark, and can be told apart by everybody."""

import re
from itertools import combinations
from math import inf
from pathlib import Path

import pytest

from hexflow_simulator.chart import Bar, Gantt, Lines, Phase, Series, parameter_curve
from hexflow_simulator.plot import COLOURS, all_svgs, png, svg
from support.page import read_page


def a_chart(
    name: str = "latency", *, points: tuple[tuple[float, float], ...] = ((1.0, 0.5), (2.0, 1.0))
) -> Lines:
    return Lines(
        name=name,
        title="Seconds & <shares>",
        x="seconds",
        y="share",
        shares=True,
        x_log=True,
        series=(Series(name="LeastHarm", points=points, marked=True),),
        verticals=((1.5, "deadline"),),
    )


def a_gantt() -> Gantt:
    bars = tuple(
        Bar(row="a100-0", begin=begin, end=end, kind="draft", phase=phase)
        for begin, end, phase in (
            (0, 1, Phase.WAITING),
            (1, 2, Phase.PREFILL),
            (2, 9, Phase.DECODE),
            (1, 4, Phase.DECODE),
        )
    )
    return Gantt(name="query", title="One query", x="seconds", rows=("a100-0", "l40s-0"), bars=bars)


@pytest.fixture(scope="module")
def drawn() -> list[str]:
    """The chart of lines, wide and narrow, and the Gantt chart, wide and narrow."""
    return [drawing for _, drawings in all_svgs([a_chart(), a_gantt()]) for drawing in drawings]


def test_a_drawing_names_its_axes_and_lines_in_text_that_can_be_searched(drawn: list[str]) -> None:
    for drawing in drawn[:2]:
        page = read_page(drawing)
        assert all(word in page.text for word in ("seconds", "share", "LeastHarm", "deadline"))
        assert page.elements[0] == "svg"
    for drawing in drawn[2:]:
        assert all(word in read_page(drawing).text for word in ("a100-0", "l40s-0", "draft"))


def test_a_drawing_says_to_who_does_not_see_it_what_is_on_it(drawn: list[str]) -> None:
    said = re.findall(r'<svg[^>]* role="img" aria-label="([^"]*)"', "".join(drawn))
    assert said[0] == said[1] == "Seconds &amp; &lt;shares>. Lines of share, over seconds: LeastHarm."
    assert said[2] == said[3] == "One query. Bars over seconds, a row for each of a100-0, l40s-0: draft."


def test_words_are_as_large_in_a_narrow_drawing_as_in_a_wide_one(drawn: list[str]) -> None:
    sizes = [set(re.findall(r"font: (\S+) ", drawing)) for drawing in drawn]
    assert all(size == sizes[0] for size in sizes)
    widths = [float(width) for width in re.findall(r'viewBox="0 0 (\S+) ', "".join(drawn))]
    assert widths[1] < 0.6 * widths[0]


def test_more_kinds_than_colours_can_still_be_told_apart() -> None:
    kinds = [f"stage-{number}" for number in range(10)]
    bars = tuple(
        Bar(row="a", begin=number, end=number + 1, kind=kind, phase=Phase.DECODE)
        for number, kind in enumerate(kinds)
    )
    drawing = svg(Gantt(name="many", title="Many", x="seconds", rows=("a",), bars=bars))
    fills = re.findall(r'<path d="[^"]*" clip-path="[^"]*" style="fill: ([^;"]*)', drawing)
    assert len(set(fills) - {"none"}) == len(kinds)


def test_places_that_are_pointed_out_do_not_look_the_same() -> None:
    chart = parameter_curve(
        "alpha", [(0.0, 1.0), (1.0, 2.0)], objective="P95, seconds", chosen=0.2, in_force=0.5
    )
    marks = re.findall(
        r'style="fill: none; (stroke-dasharray: [^;]*);[^"]*stroke: ([^;"]*)', svg(chart).split("legend_1")[1]
    )
    assert len(set(marks)) == 2


@pytest.mark.parametrize("last", [1.3, 2.5, 9.0, 30.0, 300.0, 5000.0, 1e9])
def test_an_axis_of_ratios_has_some_numbers_and_not_too_many(last: float) -> None:
    drawing = svg(a_chart(points=((1.01, 0.1), (1.01 * last, 1.0))), narrow=True)
    assert 3 <= len(re.findall(r">([\d.e+-]+)</text>", drawing)) <= 9


def test_drawings_of_one_page_share_no_id_and_refer_to_their_own(drawn: list[str]) -> None:
    pages = [read_page(each) for each in drawn]
    ids = [identity for page in pages for identity in page.ids]
    assert len(set(ids)) == len(ids)
    for page in pages:
        assert set(page.references) <= set(page.ids)
        assert page.references


def test_a_drawing_holds_no_address(drawn: list[str]) -> None:
    assert not any("//" in each for each in drawn)
    assert not any(read_page(each).addresses for each in drawn)


def test_words_and_axes_take_the_colour_of_the_text_around_them(drawn: list[str]) -> None:
    for each in drawn:
        assert "currentColor" in each
        assert not re.search(r"#(000000|000|ffffff|fff)\b", each)


def test_the_same_chart_is_the_same_text(drawn: list[str]) -> None:
    assert svg(a_chart()) == drawn[0]


def test_what_is_infinite_has_no_place_and_spoils_nothing() -> None:
    assert "nan" not in svg(a_chart(points=((1.0, 0.5), (2.0, inf), (inf, 1.0)))).lower()


def test_two_charts_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="names of their own"):
        all_svgs([a_chart(), a_chart()])


def test_a_picture_is_a_png_without_the_name_of_a_program(tmp_path: Path) -> None:
    png(a_gantt(), tmp_path / "a.png", dots_per_inch=40)
    content = (tmp_path / "a.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert b"atplotlib" not in content


def test_each_colour_stands_out_on_a_light_page_and_on_a_dark_one() -> None:
    for colour in COLOURS:
        assert contrast(colour, "#ffffff") > 2.0, colour
        assert contrast(colour, "#16181b") > 3.0, colour


def test_colours_differ_for_those_who_do_not_see_red_or_green() -> None:
    for one, other in combinations(COLOURS, 2):
        for weights in (_PROTANOPIA, _DEUTERANOPIA):
            pairs = zip(seen(one, weights), seen(other, weights), strict=True)
            assert sum((a - b) ** 2 for a, b in pairs) ** 0.5 > 25, (one, other)


# Viénot, Brettel and Mollon (1999): what is left of red, green and blue in linear light.
_PROTANOPIA = ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0))
_DEUTERANOPIA = ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0))


def seen(colour: str, weights: tuple[tuple[float, float, float], ...]) -> tuple[float, ...]:
    light = linear(colour)
    mixed = (sum(w * part for w, part in zip(row, light, strict=True)) for row in weights)
    return tuple(255 * max(0.0, part) ** (1 / 2.2) for part in mixed)


def linear(colour: str) -> tuple[float, ...]:
    return tuple((int(colour[n : n + 2], 16) / 255) ** 2.2 for n in (1, 3, 5))


def contrast(one: str, other: str) -> float:
    bright, dark = sorted(
        (
            sum(w * part for w, part in zip((0.2126, 0.7152, 0.0722), linear(each), strict=True)) + 0.05
            for each in (one, other)
        ),
        reverse=True,
    )
    return bright / dark
