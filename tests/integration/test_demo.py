"""`hexflow demo` for real: three emulated GPUs, a router, SQLite, thirty questions with checked answers (A1)."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.laptop import assert_nothing_is_left, environment, hexflow
from support.waiting import until

THREE = ("demo", "--questions", "3", "--time-scale", "40", "--baseline", "none")


@pytest.mark.timeout(180)
def test_every_question_of_the_book_comes_out_with_its_checked_rows(tmp_path: Path) -> None:
    done = hexflow(
        "demo", "--json", "--time-scale", "20", "--baseline", "none", state_dir=tmp_path, timeout=150
    )
    assert done.code == 0, done.err
    (run,) = done.json()["runs"]
    assert [item["number"] for item in run["questions"] if not item["right"]] == []
    assert len({item["question"] for item in run["questions"]}) == 30
    assert {item["tenant"] for item in run["questions"]} == {"analytics", "support"}
    assert {item["gpuType"] for item in run["instances"]} == {"A100-80GB", "L40S", "A6000"}
    assert all(item["answer"]["skipped"] == [] for item in run["questions"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(180)
def test_a_person_sees_answers_both_policies_and_where_the_time_went(tmp_path: Path) -> None:
    done = hexflow("demo", "--questions", "4", "--time-scale", "40", state_dir=tmp_path, timeout=150)
    assert done.code == 0, done.err
    for words in (
        "Answers under LeastHarm",
        "SELECT",
        "RoundRobin+FCFS",
        "(P95)",
        "Answered in time",
        "of tenant",
        "Where a question's time went",
        "What each GPU did",
        "4 of 4 answers equal the checked rows.",
    ):
        assert words in done.out, done.out
    assert max(map(len, done.out.splitlines())) <= 120


def test_wrong_rows_end_the_demo_with_status_1_and_are_shown(tmp_path: Path) -> None:
    book = tmp_path / "book.yaml"
    book.write_text("book: 1\nentries:\n  - question: nobody asks this\n    answers: {chat: [{text: no}]}\n")
    done = hexflow(*THREE, "--book", str(book), state_dir=tmp_path / "state")
    assert done.code == 1
    assert "Rows that differ from the checked answer under LeastHarm" in done.out
    assert "knows only the questions of its answer" in " ".join(done.out.split())
    assert "0 of 3 answers equal the checked rows." in done.out


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("--policy", "Fastest"), "There is no policy 'Fastest'. It must be one of ", 2),
        (("--book", "no-such-book.yaml"), "no-such-book.yaml", 2),
    ],
)
def test_what_the_demo_cannot_run_with_is_said_in_one_paragraph(
    tmp_path: Path, arguments: tuple[str, ...], words: str, code: int
) -> None:
    done = hexflow(*THREE, *arguments, state_dir=tmp_path)
    assert done.code == code, done.err
    assert words in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_a_demo_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hexflow_cli", "demo"]
    with subprocess.Popen(
        command, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as demo:
        until(lambda: any(tmp_path.glob("run-*/instances.json")), seconds=30)
        family = [psutil.Process(demo.pid), *psutil.Process(demo.pid).children(recursive=True)]
        demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=30) == 130
    assert_nothing_is_left(family, tmp_path)
