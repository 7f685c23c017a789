"""A report is one page that needs nothing but itself."""

from pathlib import Path

import pytest

from hexflow_simulator.chart import Lines, Series
from hexflow_simulator.page import html, write_html, write_pngs
from hexflow_simulator.report import Column, Report, Table
from support.page import Page, read_page

NASTY = '<script>alert("1")</script> & http'


def a_report(**changes: object) -> Report:
    usual: dict[str, object] = {
        "title": "Which policy is best",
        "summary": ("LeastHarm is best.",),
        "facts": (("Fleet", "2 × A100"), ("Traffic", NASTY)),
        "tables": (
            Table(
                title="Policies",
                columns=(Column(name="Policy", numbers=False), Column(name="P95 s", hint="95 of 100")),
                rows=(("LeastHarm", "1.0"), (NASTY, "2.0 (1.9–2.1)"), ("bound", "0.5")),
                best=frozenset({0}),
                faint=frozenset({2}),
                note="Medians.",
            ),
        ),
        "charts": (
            Lines(
                name="curve",
                title="A curve",
                x="x",
                y="y",
                series=(Series(name="LeastHarm", points=((0.0, 1.0), (1.0, 2.0))),),
                note="Seed 1.",
            ),
        ),
        "notes": ("An estimate.",),
    }
    return Report(**{**usual, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def text() -> str:
    return html(a_report())


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return read_page(text)


def test_a_page_holds_everything_that_the_report_says(page: Page) -> None:
    words = (
        "Which policy is best",
        "LeastHarm is best.",
        "2 × A100",
        "P95 s 95 of 100",
        "2.0 (1.9–2.1)",
        "Medians.",
        "A curve",
        "Seed 1.",
        "An estimate.",
    )
    assert [word for word in words if word not in page.text] == []


def test_a_page_asks_no_network_and_runs_no_script(text: str, page: Page) -> None:
    assert page.addresses == ()
    assert not {"script", "link", "iframe", "img", "object"} & set(page.elements)
    assert "://" not in text
    assert "@import" not in text
    assert "url(" not in text.replace("url(#", "")


def test_a_page_tells_the_browser_to_fetch_nothing(text: str) -> None:
    assert "default-src 'none'; style-src 'unsafe-inline'" in text


def test_what_is_wider_than_the_page_can_be_reached_with_the_keyboard(text: str) -> None:
    assert '<div class="rolling" role="region" aria-label="Policies" tabindex="0">' in text


def test_the_range_of_a_number_stands_below_it(text: str) -> None:
    assert '<td class="number">2.0 <small>(1.9–2.1)</small></td>' in text


def test_the_name_of_a_policy_goes_on_in_the_next_line_between_its_parts() -> None:
    table = Table(
        title="T", columns=(Column(name="Policy", numbers=False),), rows=(("Mixed(a=1,b=<2>)+FCFS",),)
    )
    assert "<td>Mixed<wbr>(a=1,<wbr>b=&lt;2&gt;)+<wbr>FCFS</td>" in html(a_report(tables=(table,)))


def test_words_from_outside_stay_words(text: str, page: Page) -> None:
    assert NASTY in page.text
    assert "<script" not in text


def test_ids_of_a_page_are_there_once(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.references) <= set(page.ids)


def test_the_best_row_and_the_bound_are_marked(text: str) -> None:
    assert text.count('<tr class="best">') == 1
    assert text.count('<tr class="faint">') == 1


def test_a_page_knows_light_and_dark(text: str) -> None:
    assert "prefers-color-scheme: dark" in text
    assert "color-scheme: light dark" in text


def test_a_report_without_tables_and_charts_is_a_page_too() -> None:
    page = read_page(html(a_report(tables=(), charts=(), notes=(), facts=())))
    assert "table" not in page.elements
    assert "svg" not in page.elements


def test_a_page_appears_when_it_is_whole_and_replaces_the_old_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write_html(a_report(), path)
    assert path.read_text(encoding="utf-8") == text
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError):
        write_html(a_report(charts=()), tmp_path / "report.html")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_pictures_go_into_a_folder_by_the_names_of_the_charts(tmp_path: Path) -> None:
    (path,) = write_pngs(a_report(), tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "curve.png"
    assert path.stat().st_size > 1000
