"""The HTML reports, opened in a browser as their readers do: wide and on a phone, light and dark."""

from pathlib import Path
from typing import Any

import pytest

from hexflow_simulator.chart import Bar, Gantt, Lines, Phase, Series
from hexflow_simulator.page import write_html
from hexflow_simulator.report import Column, Report, Table
from support.browser import browser_or_skip, seen_of
from support.laptop import ROOT, hexflow

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

EXAMPLE = ROOT / "examples/which-policy"
PLOTS = {
    "simulate.html": {
        "latency-distribution",
        "attainment-against-slo-scale",
        "p95-against-rate",
        "one-query-best",
        "one-query-other",
    },
    "tune.html": {"alpha-curve"},
    "bench.html": {"p95-over-ours"},
    "worst.html": {"lines", "gantt"},
}
"""Page -> the plots that are on it."""
FAULTLESS: dict[str, list[str]] = {
    "said": [],
    "asked": [],
    "cut": [],
    "overlapping": [],
    "silent": [],
    "stuck": [],
}


def the_worst() -> Report:
    """Return a report with names as long as they get, more of them than colours, and numbers of all sizes."""
    policies = [f"PrefixPowerOfTwo(imbalance={n}0,match=0.{n})+LeastLaxity" for n in range(9)]
    stages = [f"generate-candidate-{n}" for n in range(14)]
    pods = tuple(f"production-a100-pool-7f9c-{n}" for n in range(6))
    return Report(
        title="Which <policy> & why, " + "a-title-without-a-gap-" * 5,
        summary=("word " * 60,),
        facts=(("Fleet", "10 × H100-80GB-SXM (production-" + "very-" * 30 + "long)"),),
        tables=(
            Table(
                title="Policies",
                columns=(
                    Column(name="Policy", numbers=False),
                    *(Column(name=f"Figure {n}", hint="What it means.") for n in range(12)),
                ),
                rows=tuple((each, *["12345.6 (12345.6–123456.7)"] * 12) for each in policies),
                best=frozenset({0}),
            ),
        ),
        charts=(
            Lines(
                name="lines",
                title="Lines",
                x="seconds from a query's arrival to its answer, whatever came between (log)",
                y="P95 over ours, median of all scenarios of this load (log)",
                x_log=True,
                y_log=True,
                series=tuple(
                    Series(name=each, points=((0.001, n + 1.0), (1e6, 1e5 * n + 1)))
                    for n, each in enumerate(policies)
                ),
                verticals=((1.0, "the traffic's own rate"), (50.0, "twice that")),
            ),
            Gantt(
                name="gantt",
                title="Gantt",
                x="seconds since it arrived",
                rows=pods,
                bars=tuple(
                    Bar(row=pods[n % 6], begin=n * 900.0, end=n * 900.0 + 850, kind=each, phase=Phase.DECODE)
                    for n, each in enumerate(stages)
                ),
            ),
        ),
    )


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Make one report with each command, and the worst one, and look at all of them."""
    browser_or_skip()
    folder = tmp_path_factory.mktemp("reports")
    fleet = ("--fleet", str(EXAMPLE / "fleet.yaml"))
    commands = {
        "simulate.html": (
            "simulate", *fleet, "--mix", "short", "--rate", "4", "--queries", "30", "--seeds", "2", "--sweep", "0.5",
            "-p", "LeastHarm", "-p", "RoundRobin", "-p", "HexGenFlow",
        ),
        "tune.html": (
            "tune", str(EXAMPLE / "requests.csv"), *fleet, "--policy", "HexGenFlow", "--replicas", "2",
        ),
        "bench.html": (
            "bench", "--scenarios", "S1", "--loads", "0.6,0.8", "--rivals", "RoundRobin,HexGenFlow", "--count", "20",
            "--seeds", "11,12", "--tuning-seeds", "1", "--code", "this", "--results", str(folder / "results.jsonl"),
        ),
    }  # fmt: skip
    for name, arguments in commands.items():
        done = hexflow(*arguments, "--html", str(folder / name), state_dir=folder, timeout=120)
        assert (folder / name).exists(), done.err
    write_html(the_worst(), folder / "worst.html")
    return seen_of([folder / name for name in PLOTS], folder)


def test_a_report_asks_nothing_of_the_network_says_no_error_and_cuts_no_word(
    seen: list[dict[str, Any]],
) -> None:
    assert len(seen) == 4 * len(PLOTS)
    for each in seen:
        assert {fault: each[fault] for fault in FAULTLESS} == FAULTLESS, (each["page"], each["viewport"])


def test_each_plot_is_there_once_and_large_enough_to_read(seen: list[dict[str, Any]]) -> None:
    for each in seen:
        assert set(each["plots"]) == PLOTS[each["page"]]
        for name, drawings in each["plots"].items():
            ((width, height),) = drawings
            assert width > 0.8 * min(each["viewport"], 1000), (each["page"], name)
            assert height > 150, (each["page"], name)


def test_a_report_is_no_wider_than_a_phone(seen: list[dict[str, Any]]) -> None:
    assert {each["viewport"] for each in seen} == {1280, 390}
    assert [
        (each["page"], each["viewport"], each["scroll_width"])
        for each in seen
        if each["scroll_width"] > each["width"]
    ] == []


def test_what_is_wrong_with_a_page_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "wrong.html"
    page.write_text(
        """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Wrong</title></head><body>
        <h2 id="cut">Cut</h2><figure><svg viewBox="0 0 300 60" width="900" height="180"><text x="290" y="20">far too long</text>
        <text x="10" y="40">one</text><text x="12" y="40">other</text></svg></figure>
        <h2 id="gone">Gone</h2><figure><svg style="display: none" viewBox="0 0 9 9"></svg></figure>
        <div style="overflow-x: auto; width: 90px"><p style="width: 900px">unreachable</p></div>
        <img alt="" src="http://127.0.0.1:9/picture.png"><script>null.length</script></body></html>""",
        encoding="utf-8",
    )
    wide, _, phone, _ = seen_of([page], tmp_path)
    assert wide["asked"] == ["http://127.0.0.1:9/picture.png"]
    assert any("null" in line for line in wide["said"])
    assert (wide["cut"], wide["silent"], wide["stuck"]) == ([["cut", "far too long"]], ["cut"], ["DIV"])
    assert wide["overlapping"] == [["cut", "other", "one"]]
    assert wide["plots"]["gone"] == []
    assert phone["scroll_width"] > phone["width"]
    assert (tmp_path / "wrong-390-dark.png").stat().st_size > 1000
