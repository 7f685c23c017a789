"""`hexflow simulate` as a person runs it: the tutorial, its errors, many processes, ctrl-C."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from hexflow_api import load_resources
from support.laptop import ROOT, Finished, environment, hexflow
from support.page import read_page
from support.tracefiles import a_file
from support.waiting import until

EXAMPLE = ROOT / "examples/which-policy"
TUTORIAL = (ROOT / "docs/tutorial/which-policy.md").read_text(encoding="utf-8")
FLEET = EXAMPLE / "fleet.yaml"


def simulate(folder: Path, *arguments: str, **options: Any) -> Finished:
    return hexflow("simulate", "--fleet", str(FLEET), *arguments, state_dir=folder, **options)


def figures_of(text: str) -> dict[str, list[float]]:
    """Return the figures of each policy in the first table that has it."""
    found: dict[str, list[float]] = {}
    for name, figures in re.findall(r"^ +(?:▶ )?(\S[\w+ ]*?) {3,}([\d.%∞ ]+)$", text, flags=re.MULTILINE):
        found.setdefault(name, [float(figure.rstrip("%")) for figure in figures.split()])
    return found


@pytest.mark.timeout(300)
def test_the_three_commands_of_the_tutorial_say_which_policy_is_best(tmp_path: Path) -> None:
    (shell,) = re.findall(r"```sh\n(.*?)```", TUTORIAL, flags=re.DOTALL)
    lines = shell.splitlines()
    assert (len(lines), lines[0]) == (3, "cd examples/which-policy")
    shutil.copytree(EXAMPLE, tmp_path / "examples/which-policy")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["sh", "-e", "-c", shell],
        cwd=tmp_path,
        env=environment(tmp_path) | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (heads,) = re.findall(r"^ +(Policy .*)$", TUTORIAL, flags=re.MULTILINE)
    assert heads.split() in [line.split() for line in done.stdout.splitlines()]
    assert re.search(r"^\w+ is best by P95 \(s\): [\d.]+ \(", done.stdout, flags=re.MULTILINE)
    shown, found = figures_of(TUTORIAL), figures_of(done.stdout)
    assert {"LeastHarm", "ShortestQueue", "clairvoyant bound"} <= set(shown)
    assert {name: found[name] for name in shown} == {
        name: pytest.approx(figures, rel=0.1) for name, figures in shown.items()
    }
    page = read_page((tmp_path / "examples/which-policy/report.html").read_text(encoding="utf-8"))
    assert page.addresses == ()
    assert len(set(page.ids)) == len(page.ids)
    assert all(
        words in page.text for words in ("P95 against the arrival rate", "SLO scale", "clairvoyant bound")
    )


def test_the_files_of_the_tutorial_are_those_it_shows(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", TUTORIAL, flags=re.DOTALL)
    (tmp_path / "fleet.yaml").write_text(shown)
    assert load_resources(tmp_path / "fleet.yaml").pools == load_resources(FLEET).pools
    (header,) = re.findall(r"```\n(arrival.*?)\n```", TUTORIAL, flags=re.DOTALL)
    assert (EXAMPLE / "requests.csv").read_text().splitlines()[0] == header


def test_the_result_is_the_same_over_many_processes_and_in_one(tmp_path: Path) -> None:
    arguments = (
        "--mix",
        "short",
        "--rate",
        "4",
        "--queries",
        "40",
        "--seeds",
        "2",
        "--json",
        "-p",
        "LeastHarm",
        "-p",
        "RoundRobin",
    )
    one = simulate(tmp_path, *arguments, "--workers", "1")
    assert one.code == 0, one.err
    assert simulate(tmp_path, *arguments, "--workers", "3").json() == one.json()
    assert one.json()["complete"] is True
    assert [len(each["runs"]) for each in one.json()["policies"]] == [2, 2]


def test_a_report_and_its_pictures_come_beside_the_json(tmp_path: Path) -> None:
    page, folder = tmp_path / "report.html", tmp_path / "pictures"
    done = simulate(
        tmp_path, "--mix", "short", "--rate", "4", "--queries", "30", "--seeds", "1", "--sweep", "0.5", "--json",
        "--html", str(page), "--png", str(folder), "-p", "LeastHarm", "-p", "RoundRobin",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert {each["pace"] for each in done.json()["policies"][0]["atRates"]} == {0.5, 1.0}
    assert read_page(page.read_text(encoding="utf-8")).elements.count("figure") == 5
    assert sorted(path.name for path in folder.iterdir()) == [
        "attainment-against-slo-scale.png",
        "latency-distribution.png",
        "one-query-best.png",
        "one-query-other.png",
        "p95-against-rate.png",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--mix", "short", "--rate", "1", "-p", "LeastHram"), 2, "did you mean 'LeastHarm'"),
        (("--mix", "shrot", "--rate", "1"), 2, "there are: natural"),
        (("--mix", "short", "--rate", "1", "--by", "P90"), 2, "there are: P50, P95"),
        (("--mix", "short", "--rate", "1", "--sweep", "fast"), 2, "--sweep takes multiples"),
        (
            ("--mix", "short", "--rate", "1", "--html", "/no/such/folder/report.html"),
            2,
            "There is no folder /no/such/folder",
        ),
        (("--mix", "short", "--rate", "1", "--html", "/"), 2, "/ is a folder; name a file in it"),
        (("--mix", "short", "--rate", "1", "--png", __file__), 2, "is a file; name a folder"),
        (("--trace", "no-such.csv"), 2, "no-such.csv: cannot be read"),
        (("--mix", "short", "--rate", "1", "--seconds", "inf"), 2, "Invalid value for '--seconds'"),
        (("--mix", "short", "--rate", "1", "--slo", "inf"), 2, "Invalid value for '--slo'"),
        (("--fleet", "no-such.yaml", "--mix", "short", "--rate", "1"), 3, "no-such.yaml"),
    ],
)
def test_what_is_wrong_is_one_paragraph(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = simulate(tmp_path, *arguments)
    assert done.code == code, done.err
    assert words in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("arrival_s,input_tokens", "0,5"), "trace.csv:1: no column output_tokens"),
        (
            ("arrival_s,input_tokens,output_tokens", "0,5,5", "-1,5,5"),
            "trace.csv:3: an arrival at -1.0, before the start",
        ),
        ((), "trace.csv: an empty file"),
        (
            ("arrival_s,input_tokens,output_tokens", "0,nan,5"),
            "trace.csv:2: input_tokens is 'nan', no whole number",
        ),
    ],
)
def test_a_bad_trace_is_told_with_file_and_line(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    done = simulate(tmp_path, "--trace", str(a_file(tmp_path, *lines, name="trace.csv")), "--json")
    assert done.code == 2
    assert words in done.json()["error"]["message"]


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])
def test_an_output_that_is_full_is_told_in_one_paragraph(tmp_path: Path, form: tuple[str, ...]) -> None:
    trace = a_file(tmp_path, "arrival_s,input_tokens,output_tokens", "0,5,5", name="trace.csv")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "hexflow_cli", "simulate", "--fleet", str(FLEET)),
                *("--trace", str(trace), "--seeds", "1", "-p", "RoundRobin", *form),
            ],
            env=environment(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 5, done.stderr
    assert "The output cannot be written (No space left on device)." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.timeout(300)
def test_ctrl_c_shows_what_there_is_and_leaves_nobody(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "hexflow_cli",
        "simulate",
        "--fleet",
        str(FLEET),
        "--json",
        "--workers",
        "2",
    ]
    command += ["--mix", "short", "--rate", "4", "--queries", "20", "--seeds", "900", "-p", "RoundRobin"]
    with subprocess.Popen(
        command,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        parent = psutil.Process(process.pid)
        until(lambda: sum(busy_seconds(child) for child in parent.children(recursive=True)) > 5, seconds=100)
        family = parent.children(recursive=True)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    found = json.loads(out)
    assert found["complete"] is False
    assert 0 < len(found["seeds"]) < 900
    assert "Traceback" not in err
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []


def busy_seconds(process: psutil.Process) -> float:
    try:
        return float(process.cpu_times().user)
    except psutil.NoSuchProcess:
        return 0.0
