import io

import pytest
from rich.console import Console, RenderableType

from hexflow_cli.table import explanation, rows_table, seconds, sql_block, tokens, verdict
from hexflow_router.answer import CandidateReport, Status
from support.answers import a_call_report, a_stage_report, an_answer


def shown(renderable: RenderableType, *, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_rows_keep_null_apart_from_an_empty_text_and_numbers_to_the_right() -> None:
    lines = shown(rows_table(["name", "n"], [["a", 5], [None, 12345], ["", None]])).splitlines()
    assert lines[3].split() == ["a", "5"]
    assert lines[4].split() == ["NULL", "12345"]
    assert lines[5].split() == ["NULL"]
    assert lines[3].rstrip().endswith("    5")


def test_text_from_the_database_is_never_markup_and_never_unbounded() -> None:
    text = shown(rows_table(["[bold]x"], [["[red]not red[/red]"], ["y" * 500]]))
    assert "[bold]x" in text
    assert "[red]not red[/red]" in text
    assert "y" * 61 not in text


def test_only_the_first_rows_are_shown() -> None:
    assert "49" in shown(rows_table(["n"], [[n] for n in range(1000)]))
    assert "50" not in shown(rows_table(["n"], [[n] for n in range(1000)]))


def test_sql_is_shown_as_it_is() -> None:
    assert "SELECT [a] FROM t" in shown(sql_block("SELECT [a] FROM t"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0123, "0.01 s"), (1.26, "1.3 s"), (99.96, "100.0 s"), (123.4, "123 s")],
)
def test_seconds_have_the_digits_that_a_person_needs(value: float | None, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (9999, "9999"), (12_345, "12.3k")])
def test_tokens_are_short(value: int | None, text: str) -> None:
    assert tokens(value) == text


def test_the_verdict_sums_an_answer_up() -> None:
    answer = an_answer(
        a_stage_report(a_call_report(id="a"), a_call_report(id="b"), a_call_report(instance="l40s-0"))
    )
    assert (
        shown(verdict(answer))
        == "1 row · 6.0 s of 60.0 s · 3 calls on a100-0 ×2, l40s-0 · 2000 + 100 tokens\n"
    )


def test_the_verdict_says_what_is_late_cut_off_or_skipped() -> None:
    answer = an_answer(
        rows=((1,), (2,)),
        truncated=True,
        seconds=70.0,
        deadline_met=False,
        skipped=("evaluation: it is late",),
    )
    text = shown(verdict(answer), width=300)
    assert "2 rows (more were cut off)" in text
    assert "70.0 s, 10.0 s past its deadline of 60.0 s" in text
    assert "no calls" in text
    assert "left out: evaluation: it is late" in text


def test_a_failure_in_time_is_not_called_late() -> None:
    answer = an_answer(status=Status.FAILED, rows=None, columns=None, deadline_met=False)
    assert "past its deadline" not in shown(verdict(answer))


def test_the_explanation_has_every_call_and_every_statement() -> None:
    answer = an_answer(
        a_stage_report(
            a_call_report(sibling=1, round=1, attempts=2), a_call_report(instance=None, reason="NoInstance")
        ),
        a_stage_report(name="evaluation", status="Skipped"),
        candidates=(
            CandidateReport(sql="SELECT 1", votes=3, chosen=True),
            CandidateReport(sql=None, error="no such column: x", rounds=2),
        ),
    )
    text = shown(explanation(answer, width=100))
    for words in (
        "candidate 2, round 2, try 2",
        "a100-0",
        "-3.0 s",
        "NoInstance",
        "skipped",
        "✓",
        "no statement",
        "no such column: x",
    ):
        assert words in text


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_figure_of_a_call_is_cut_in_a_narrow_terminal(width: int) -> None:
    call = a_call_report(urgency=-12.3, prompt_tokens=12_345, output_tokens=1234, seconds=10.6)
    text = shown(explanation(an_answer(a_stage_report(call)), width=width), width=width)
    assert "…" not in text
    for figure in ("-12.3 s", "10.6 s", "12.3k", "1234"):
        assert figure in text
