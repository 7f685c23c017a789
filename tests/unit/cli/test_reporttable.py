"""A report on a terminal is its words and tables, the answer last."""

import io

from rich.console import Console

from hexflow_cli.reporttable import show_report
from hexflow_simulator.report import Column, Report, Table


def shown(report: Report, *, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    show_report(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def a_table(**changes: object) -> Table:
    usual: dict[str, object] = {
        "title": "Policies",
        "columns": (Column(name="Policy", numbers=False), Column(name="P95 s")),
        "rows": (("LeastHarm", "1.0"), ("Round[bold]Robin", "22.0")),
        "best": frozenset({0}),
    }
    return Table(**{**usual, **changes})  # type: ignore[arg-type]


def test_the_answer_stands_last_and_the_facts_first() -> None:
    text = shown(
        Report(
            title="t",
            summary=("LeastHarm is best.",),
            facts=(("Fleet", "2"),),
            tables=(a_table(),),
            notes=("A note.",),
        )
    )
    places = [
        text.index(words) for words in ("Fleet: 2", "Policies", "22.0", "A note.", "LeastHarm is best.")
    ]
    assert places == sorted(places)


def test_the_best_row_is_marked_and_words_from_outside_are_no_markup() -> None:
    lines = shown(Report(title="t", tables=(a_table(),))).splitlines()
    (best,) = [line for line in lines if "LeastHarm" in line]
    assert best.strip().startswith("▶ LeastHarm")
    assert any("Round[bold]Robin" in line for line in lines)


def test_a_table_without_a_best_row_has_no_room_for_marks() -> None:
    lines = shown(Report(title="t", tables=(a_table(best=frozenset()),))).splitlines()
    assert any(line.startswith(" LeastHarm") for line in lines)
    assert not any("▶" in line for line in lines)


def test_a_name_stays_on_one_line_where_numbers_break() -> None:
    wide = a_table(rows=(("LeastOutstanding", "10.0 (9.0-11.0)"),), best=frozenset())
    text = shown(Report(title="t", tables=(wide,)), width=30)
    assert "LeastOutstanding" in text
