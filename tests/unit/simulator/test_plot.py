"""Drawings stand in a page of their own accord, light or dark, and can be told apart by everybody."""

import re
from itertools import combinations
from math import inf
from pathlib import Path

import pytest

from hexflow_simulator.chart import Bar, Gantt, Lines, Phase, Series
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
    return all_svgs([a_chart(), a_gantt()])


def test_a_drawing_names_its_axes_and_lines_in_text_that_can_be_searched(drawn: list[str]) -> None:
    page = read_page(drawn[0])
    assert all(
        word in page.text for word in ("seconds", "share", "LeastHarm", "deadline", "Seconds & <shares>")
    )
    assert page.elements[0] == "svg"
    assert all(word in read_page(drawn[1]).text for word in ("a100-0", "l40s-0", "draft"))


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
