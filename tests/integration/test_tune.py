"""`hexflow tune` as a person runs it: the page of the docs, an event log alone, a workflow's resource, its errors."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hexflow_api import load_resources, profile_of
from hexflow_api.tuned import read_tuned
from hexflow_scheduler import Policy
from hexflow_simulator import simulate
from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.fleetfile import read_fleet
from hexflow_simulator.mix import mix_named
from hexflow_simulator.speedfit import refitted
from hexflow_simulator.tuning import SpeedFit
from hexflow_simulator.workload import Workload
from support.laptop import ROOT, Finished, environment, hexflow
from support.page import read_page
from support.resources import workflow_data
from support.router import write_yaml
from support.tracefiles import a_file

EXAMPLE = ROOT / "examples/which-policy"
FLEET = EXAMPLE / "fleet.yaml"
PAGE = (ROOT / "docs/how-to/tune.md").read_text(encoding="utf-8")
QUICK = ("--no-advice", "--replicas", "2", "--min-queries", "20")


def tune(folder: Path, *arguments: str, **options: Any) -> Finished:
    return hexflow("tune", *arguments, state_dir=folder, **options)


def a_log(
    folder: Path, *, policy: str = "HexGenFlow", slower: float = 1.0, workflow: str = "", **values: float
) -> Path:
    """Return the event log of a router over the example's fleet, whose GPUs may all be slower than believed."""
    fit = SpeedFit(instance_id="", pool="", gpu_type="", calls=0, prefill=slower, decode=slower)
    fleet = read_fleet(FLEET)
    real = [replace(each, profile=refitted(each.instance.profile, fit)) for each in fleet.instances]
    workload = Workload(
        mix=mix_named("natural"),
        arrivals=Poisson(1.5),
        model=fleet.models[0],
        base_seconds=10.0,
    )
    queries = [replace(each, workflow=workflow) for each in workload.queries(1, count=40)]
    folder.mkdir(exist_ok=True)
    lines: list[str] = []
    simulate(queries, real, Policy.named(policy, **values), sink=lines.append)
    return a_file(folder, *lines, name="events.jsonl")


@pytest.mark.timeout(300)
def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    (shell,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
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
    (trace,) = re.findall(r"^    (Trace: .*)$", PAGE, flags=re.MULTILINE)
    assert trace in done.stdout
    assert re.search(r"^(alpha 0.5 -> |no change: alpha |alpha stays at )", done.stdout, flags=re.MULTILINE)


@pytest.mark.timeout(300)
def test_an_event_log_alone_is_enough_and_tells_how_fast_the_gpus_were(tmp_path: Path) -> None:
    # With so much weight on short queues every instance has calls enough to be told how fast it is.
    log = a_log(tmp_path, slower=1.5, beta=100.0)
    report, parameters, profiles = (tmp_path / name for name in ("r.html", "p.yaml", "f.yaml"))
    done = tune(
        tmp_path,
        str(log),
        "--html",
        str(report),
        "--write",
        str(parameters),
        "--write-profile",
        str(profiles),
        *QUICK,
    )
    assert done.code == 0, done.err
    assert "alpha: 0.5 in force" in done.out  # the log says which policy, and its values
    assert "slower" in done.out
    page = read_page(report.read_text(encoding="utf-8"))
    assert page.addresses == ()
    assert "in force" in page.text
    found = read_tuned(yaml.safe_load(parameters.read_text()))
    assert found.recommended is not None
    assert set(found.recommended.values) == {"alpha"}
    assert found.outcome is not None
    # what was written is what a pool may point to
    pool = yaml.safe_load_all(FLEET.read_text())
    changed = [
        each
        | {
            "spec": each["spec"]
            | {"profile": {"configMapRef": {"name": f"{name}-profile", "key": "profile.json"}}}
        }
        for each in pool
        for name in [each["metadata"]["name"]]
    ]
    write_yaml(tmp_path / "pools.yaml", *changed)
    resources = load_resources([tmp_path / "pools.yaml", profiles])
    believed = {each.name: profile_of(each) for each in load_resources(FLEET).pools}
    for each in resources.pools:
        now = profile_of(each, resources)
        assert now.t0 / believed[each.name].t0 == pytest.approx(1.5, rel=0.1)


@pytest.mark.timeout(300)
def test_a_workflow_says_what_may_change_and_how_far(tmp_path: Path) -> None:
    write_yaml(
        tmp_path / "workflow.yaml",
        workflow_data(
            "shop",
            slo={"deadlineSeconds": 60, "objective": "Req95"},
            scheduling={"policy": "HexGenFlow", "alpha": {"seed": 0.4, "min": 0.3, "max": 0.6}},
            tuning={"mode": "Auto", "minQueries": 30, "maxStep": 0.05},
        ),
    )
    write_yaml(
        tmp_path / "secret.yaml",
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "shop"},
            "stringData": {"dsn": "sqlite:///shop.sqlite"},
        },
    )
    (tmp_path / "shop.sqlite").touch()
    fleet = [option for path in (FLEET, tmp_path) for option in ("--fleet", str(path))]
    log = a_log(tmp_path / "log", workflow="shop")
    done = tune(tmp_path, str(log), *fleet, "-w", "shop", "--no-advice", "--replicas", "2", "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert (result["workflow"], result["policy"], result["objective"]) == ("shop", "HexGenFlow", "Req95")
    assert result["before"]["alpha"] == 0.4
    assert result["proposed"] == pytest.approx(0.4, abs=0.0501)
    assert {0.3, 0.6} <= {point["value"] for point in result["curve"]}
    few = tune(tmp_path, str(log), *fleet, "-w", "shop", "--min-queries", "41", "--json")
    assert few.code == 1
    assert json.loads(few.out)["verdict"] == "TooFewQueries"
    stranger = tune(tmp_path, str(log), *fleet, "-w", "shoe")
    assert stranger.code == 2
    assert "No TextToSQLWorkflow is called 'shoe'" in stranger.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((str(EXAMPLE / "requests.csv"),), "does not say what served it"),
        (("missing.csv",), "cannot be read"),
        ((str(EXAMPLE / "requests.csv"), "-f", str(FLEET), "-p", "HexFlow"), "did you mean"),
        ((str(EXAMPLE / "requests.csv"), "-f", str(FLEET), "--objective", "P96"), "there are: P95, Req95"),
        ((str(EXAMPLE / "requests.csv"), "-f", str(FLEET), "--min", "5", "--max", "2"), "leaves nothing"),
        ((str(EXAMPLE / "requests.csv"), "-f", str(FLEET), "--min", "nan"), "leaves nothing"),
        (
            (str(EXAMPLE / "requests.csv"), "-f", str(FLEET), "--in-force", "99"),
            "exponent of LeastHarm lies between",
        ),
        (
            (str(EXAMPLE / "requests.csv"), "-f", str(FLEET), "-w", "shop"),
            "No query of",
        ),
        (
            (str(EXAMPLE / "requests.csv"), "-f", str(FLEET), "--write", "/no/such/folder/policy.yaml"),
            "There is no folder /no/such/folder",
        ),
        ((str(FLEET),), "fleet.yaml"),
    ],
)
def test_what_cannot_be_tuned_is_said_in_one_paragraph(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = tune(tmp_path, *arguments)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err
