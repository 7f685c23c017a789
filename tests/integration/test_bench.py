"""`hexflow bench` as a person runs it: stopped and taken up again, its page, its errors."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.laptop import Finished, environment, hexflow
from support.page import read_page
from support.waiting import until

CELL = ("--scenarios", "S1", "--loads", "0.6", "--rivals", "RoundRobin,LeastOutstanding", "--count", "20")
SMALL = (*CELL, "--seeds", "11,12", "--tuning-seeds", "1", "--workers", "1", "--code", "this")


def bench(folder: Path, *arguments: str, **options: Any) -> Finished:
    return hexflow("bench", *arguments, state_dir=folder, **options)


@pytest.mark.timeout(300)
def test_a_benchmark_gives_a_page_and_runs_nothing_twice(tmp_path: Path) -> None:
    results, page = tmp_path / "results.jsonl", tmp_path / "docs" / "page.md"
    arguments = (*SMALL, "--results", str(results), "--rates", "--rate-seeds", "21")
    done = bench(tmp_path, *arguments, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["missing"] == 0
    assert {rival["policy"] for rival in found["cells"][0]["rivals"]} == {"RoundRobin", "LeastOutstanding"}
    assert found["cells"][0]["bound"]["p95_ours_over"]["low"] >= 1
    (rates,) = found["rates"]["rows"]
    assert set(rates["of"]) == {"LeastHarm", "RoundRobin", "LeastOutstanding"}
    size = results.stat().st_size
    # what there is gives the same again, without a trial
    shown = bench(
        tmp_path, *arguments, "--only-report", "--report", str(page), "--html", str(tmp_path / "page.html")
    )
    assert shown.code == 0, shown.err
    assert results.stat().st_size == size
    text = page.read_text(encoding="utf-8")
    assert "* Results of: this" in text
    assert "## Sustainable rate" in text
    assert "| S1 | 0.6 |" in text
    assert read_page((tmp_path / "page.html").read_text(encoding="utf-8")).addresses == ()
    other = bench(tmp_path, *SMALL, "--results", str(results), "--code", "that")
    assert other.code == 2
    assert "holds results of this, and this is that" in other.err


def a_long_one(results: Path) -> list[str]:
    """Return the command of a benchmark that lasts long enough to be stopped."""
    return [
        sys.executable,
        "-m",
        "hexflow_cli",
        "bench",
        *SMALL,
        "--count",
        "200",
        "--results",
        str(results),
    ]


@pytest.mark.timeout(300)
def test_a_benchmark_that_was_stopped_keeps_what_it_has(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    with subprocess.Popen(
        a_long_one(results),
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(lambda: results.exists() and len(results.read_text().splitlines()) > 1, seconds=120)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "The same command goes on from there" in err
    kept = results.read_text().splitlines()
    assert len(kept) > 1
    assert all(json.loads(line) for line in kept)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("killed", "code", "words"),
    [(False, 130, "The same command goes on from there"), (True, 5, "was killed, perhaps for memory")],
    ids=["ctrl-C of a terminal", "a worker killed"],
)
def test_a_benchmark_of_several_processes_ends_in_order_and_leaves_nobody(
    tmp_path: Path, killed: bool, code: int, words: str
) -> None:
    results = tmp_path / "results.jsonl"
    with subprocess.Popen(
        [*a_long_one(results), "--workers", "2"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        until(lambda: results.exists() and len(results.read_text().splitlines()) > 1, seconds=200)
        family = psutil.Process(process.pid).children(recursive=True)
        workers = [each for each in family if "spawn_main" in " ".join(each.cmdline())]
        if killed:
            workers[0].kill()
        else:
            os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert words in " ".join(err.split())
    assert "Traceback" not in err
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    assert all(json.loads(line) for line in results.read_text().splitlines())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scenarios", "S99"), "no scenario is called 'S99'"),
        (("--rivals", "RoundRobbin"), "did you mean"),
        (("--loads", "fast"), "--loads takes numbers"),
        (("--loads", "0"), "from 0.01 to 100"),
        (("--rivals", "LeastHarm"), "nobody to be compared with"),
        (("--html", "/no/such/folder/page.html"), "There is no folder /no/such/folder"),
        (("--seeds", ""), "--seeds takes numbers"),
        (("--only-report", "--results", "missing.jsonl"), "run the benchmark first"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_paragraph(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = bench(tmp_path, *arguments)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err
