"""What the pages about traces and workloads say is so."""

import re
from pathlib import Path

import pytest

from hexflow_simulator.importing import open_trace
from hexflow_simulator.mix import MIXES
from hexflow_simulator.scenario import SCENARIOS
from hexflow_simulator.tracefile import read_trace

DOCS = Path(__file__).parents[3] / "docs"
TRACES = (DOCS / "reference/traces.md").read_text(encoding="utf-8")
WORKLOADS = (DOCS / "explanation/workloads.md").read_text(encoding="utf-8")


def test_the_example_of_a_trace_can_be_read(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", TRACES, flags=re.DOTALL)
    path = tmp_path / "trace.jsonl"
    path.write_text(example)
    assert read_trace(path).note == "the Tuesday of the outage"
    (query,) = open_trace(path)
    assert [len(stage.calls) for stage in query.stages] == [2, 1]


def test_the_program_of_the_page_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ((code, output),) = re.findall(r"```python\n(.*?)```\n\n    (.*?)\n", TRACES, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "traces.md", "exec"), {})
    assert capsys.readouterr().out.strip() == output


def test_the_page_names_every_mix_and_the_rate_of_every_scenario() -> None:
    assert all(f"`{name}`" in WORKLOADS for name in MIXES)
    rows = dict(re.findall(r"^\| ([SX]\d+) \|.*?\| ([\d.]+) \| [^|]*\|$", WORKLOADS, flags=re.MULTILINE))
    assert {name: float(rate) for name, rate in rows.items()} == {
        name: scenario.rate for name, scenario in SCENARIOS.items()
    }
