import io
import re

from rich.console import Console, RenderableType

from hexflow_cli.board import BurstBoard, line
from hexflow_cli.comparison import (
    answers_table,
    conclusion,
    instances_table,
    policies_table,
    stages_table,
    wrong_table,
)
from hexflow_cli.enginetime import EngineTime, parse
from hexflow_cli.report import Outcome, Report, sum_up
from hexflow_cli.watch import QueryWatch
from hexflow_router.answer import Answer, Status
from support.answers import a_call_report, a_stage_report, an_answer


def shown(renderable: RenderableType, *, width: int = 100, height: int = 30) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    console.print(renderable, height=height)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def an_outcome(number: int, answer: Answer | None, *, right: bool = True, failure: str = "") -> Outcome:
    return Outcome(
        number=number,
        tenant="support",
        question="How many [customers] live in Berlin?",
        arrival_seconds=0.0,
        answer=answer,
        right=right,
        failure=failure,
    )


def a_report(policy: str, *seconds: float) -> Report:
    stage = a_stage_report(a_call_report(), a_call_report(id="b", instance="l40s-0", gpu_type="L40S"))
    outcomes = [
        an_outcome(n, an_answer(stage, id=str(n), seconds=value, deadline_met=value <= 60.0))
        for n, value in enumerate(seconds, start=1)
    ]
    return sum_up(
        policy, outcomes, {"a100-0": EngineTime(completions=2, prefill_seconds=1.0, decode_seconds=7.0)}
    )


def test_each_answer_has_question_statement_rows_seconds_and_instances() -> None:
    text = shown(answers_table(a_report("HexGenFlow", 20.0, 70.0), width=120), width=120)
    assert "How many [customers] live in Berlin?" in text
    assert "SELECT COUNT(*) AS customers FROM customers" in text
    assert "1 ✓" in text
    assert "20.0  yes" in text
    assert "70.0  late" in text
    assert "a100×1 l40s×1" in text


def test_tables_fit_a_narrow_terminal() -> None:
    reports = [a_report("HexGenFlow", 20.0), a_report("RoundRobin+FCFS", 30.0)]
    for table in (
        answers_table(reports[0], width=80),
        policies_table(reports),
        stages_table(reports),
        instances_table(reports, width=80),
    ):
        text = shown(table, width=80)
        assert max(map(len, text.splitlines())) <= 80
        assert "…" not in text or table.row_count == 1
        assert "RoundRobin+FCFS" in text or table.row_count == 1


def test_a_very_narrow_terminal_costs_words_but_no_figure() -> None:
    reports = [a_report("HexGenFlow", 20.0), a_report("RoundRobin+FCFS", 131.0)]
    answers = shown(answers_table(reports[0], width=60), width=60)
    assert "How many [customers]" in answers
    assert "20.0  yes" in answers
    assert re.search(r"20\.0 +131\.0 +6\.55× shorter", shown(policies_table(reports), width=60))
    for table in (stages_table(reports), instances_table(reports, width=60)):
        text = shown(table, width=60)
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= 60


def test_policies_stand_side_by_side_with_the_gain() -> None:
    text = shown(
        policies_table([a_report("HexGenFlow", 20.0, 30.0), a_report("RoundRobin+FCFS", 40.0, 90.0)])
    )
    assert "2.00× shorter" in text
    assert "2 of 2 (100%)" in text
    assert "1 of 2 (50%)" in text
    assert "+1" in text


def test_a_worse_figure_is_called_worse() -> None:
    assert "2.00× longer" in shown(policies_table([a_report("A", 40.0), a_report("B", 20.0)]))


def test_one_policy_alone_has_no_gain() -> None:
    text = shown(policies_table([a_report("HexGenFlow", 20.0)]))
    assert "Gain" not in text
    assert "two policies" not in text


def test_the_time_of_an_engine_is_told_by_the_call() -> None:
    row = next(
        line
        for line in shown(instances_table([a_report("HexGenFlow", 20.0, 20.0)], width=100)).splitlines()
        if "a100" in line
    )
    assert row.split() == ["a100-0", "A100-80GB", "2", "50%", "1.00", "0.50", "3.50", "75%"]


def test_wrong_and_missing_answers_are_shown_with_what_came() -> None:
    report = sum_up(
        "HexGenFlow",
        [
            an_outcome(1, an_answer(sql="SELECT wrong"), right=False),
            an_outcome(2, None, right=False, failure="No router."),
        ],
    )
    text = shown(wrong_table(report))
    assert "SELECT wrong" in text
    assert "No router." in text
    assert "0 of 2 answers equal the checked rows." in shown(conclusion([report], time_scale=5.0))
    assert "–" in shown(answers_table(report, width=100))


def test_the_conclusion_says_what_is_real() -> None:
    text = shown(
        conclusion([a_report("HexGenFlow", 20.0), a_report("RoundRobin+FCFS", 30.0)], time_scale=5.0)
    )
    assert "HexGenFlow answered 1 of 1 in time, RoundRobin+FCFS 1; its P95 is 1.50× shorter." in text
    assert "5 times faster" in text
    assert "counts as 5" in " ".join(text.split())


def test_the_metrics_of_a_vllm_become_its_time() -> None:
    text = """
# TYPE vllm:request_prefill_time_seconds histogram
vllm:request_prefill_time_seconds_bucket{engine="0",le="+Inf"} 3.0
vllm:request_prefill_time_seconds_count{engine="0"} 3.0
vllm:request_prefill_time_seconds_sum{engine="0"} 1.5
# TYPE vllm:request_decode_time_seconds histogram
vllm:request_decode_time_seconds_bucket{engine="0",le="+Inf"} 3.0
vllm:request_decode_time_seconds_count{engine="0"} 3.0
vllm:request_decode_time_seconds_sum{engine="0"} 12.0
"""
    assert parse(text) == EngineTime(completions=3, prefill_seconds=1.5, decode_seconds=12.0)
    assert parse("") == EngineTime()


def test_the_board_shows_fleet_and_questions_in_the_height_there_is() -> None:
    board = BurstBoard(policy="HexGenFlow", total=30, gpus={"a100-0": "A100-80GB", "l40s-0": "L40S"})
    for number in range(1, 31):
        watch = QueryWatch(question="[q]", elapsed=lambda: 12.0, deadline_seconds=10.0)
        watch.take("stage.started", {"stage": "evaluation"})
        watch.take("call.placed", {"stage": "evaluation", "id": "x", "instance": "a100-0"})
        board.ask(number, tenant="support", watch=watch)
    board.answer(an_outcome(1, an_answer()))
    text = shown(board, height=20)
    assert "30 of 30 questions asked · 1 answered · 1 in time" in text
    assert "29 calls" in text
    assert "evaluation" in text
    assert "12 of 10 s" in text
    assert len(text.splitlines()) <= 20
    narrow = shown(board, width=60, height=20)
    assert re.search(r"13 +support +\[q\] +evaluation +12 of 10 s", narrow)


def test_one_line_tells_an_answer_where_nothing_is_drawn() -> None:
    assert "✓ in time" in line(an_outcome(1, an_answer())).plain
    assert "✗ no answer" in line(an_outcome(1, None, right=False)).plain
    failed = an_answer(status=Status.FAILED, reason="NoInstance", rows=None, deadline_met=False)
    assert "✗ NoInstance" in line(an_outcome(1, failed, right=False)).plain
    assert "✗ wrong rows" in line(an_outcome(1, an_answer(), right=False)).plain
    assert "✓ late" in line(an_outcome(1, an_answer(deadline_met=False))).plain
