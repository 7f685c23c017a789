"""What a contest came to, in sentences, tables, charts and plain data."""

import json
from math import inf

import pytest

from hexflow_simulator.contest import Bound, Contest, RunResult, bound
from hexflow_simulator.contestcharts import contest_charts
from hexflow_simulator.contestdata import contest_data
from hexflow_simulator.contestreport import conclusion, contest_report, load, standings_table
from hexflow_simulator.page import html
from hexflow_simulator.standings import Measure, Standings, standings
from support.contests import OURS, PLAIN, a_contest, a_result, all_results
from support.page import read_page


@pytest.fixture(scope="module")
def contest() -> Contest:
    return a_contest(seeds=(1, 2), paces=(0.5,))


@pytest.fixture(scope="module")
def found(contest: Contest) -> Standings:
    results: list[RunResult] = all_results(contest)
    bounds = {seed: bound(contest, seed) for seed in contest.seeds}
    return standings(results, contest.entries, bounds=bounds)


def test_a_report_says_everything_in_one_page(contest: Contest, found: Standings) -> None:
    report = contest_report(contest, found, title="Best", facts=[("Fleet", "two")], notes=["A note."])
    page = read_page(html(report))
    words = (
        "LeastHarm",
        "RoundRobin",
        "clairvoyant bound",
        "Req95",
        "draft",
        "A note.",
        "Medians over 2 seeds",
    )
    assert [word for word in words if word not in page.text] == []
    assert page.addresses == ()
    assert page.elements.count("figure") == 5


def test_the_charts_are_distributions_rates_and_one_query_under_two_policies(
    contest: Contest, found: Standings
) -> None:
    names = [chart.name for chart in contest_charts(contest, found)]
    assert names == [
        "latency-distribution",
        "attainment-against-slo-scale",
        "p95-against-rate",
        "one-query-best",
        "one-query-other",
    ]


def test_without_other_paces_there_is_no_curve_of_rates(contest: Contest) -> None:
    alone = standings([a_result(OURS), a_result(PLAIN, p95=12.0)], (OURS, PLAIN))
    assert [chart.name for chart in contest_charts(contest, alone)] == [
        "latency-distribution",
        "attainment-against-slo-scale",
    ]


def test_the_conclusion_names_the_best_the_next_and_the_last() -> None:
    third = a_result(a_contest().entries[1], p95=20.0)
    (sentence,) = conclusion(standings([a_result(OURS), third], (OURS, PLAIN)))
    assert sentence.startswith("LeastHarm is best by P95 (s): 10.0.")
    assert "RoundRobin, 2.00 times its P95" in sentence
    assert "last" not in sentence, "of two policies the second is named once"
    assert "one seed" in sentence


def test_the_conclusion_says_when_nobody_can_tell_two_apart() -> None:
    results = [
        a_result(entry, seed, p95=p95) for entry, p95 in ((OURS, 10.0), (PLAIN, 10.05)) for seed in (1, 2)
    ]
    (sentence,) = conclusion(standings(results, (OURS, PLAIN)))
    assert "RoundRobin cannot be told from it" in sentence
    assert "clearly behind" not in sentence


def test_what_was_stopped_says_so() -> None:
    assert "Stopped" in conclusion(standings([a_result(OURS)], (OURS, PLAIN), complete=False))[-1]


def test_the_table_shows_ranges_only_where_there_are_some_and_the_bound_last() -> None:
    bounds = {seed: Bound(figures=a_result(p95=1.0).figures, latencies=(), scales=()) for seed in (1, 2)}
    results = [a_result(OURS, 1, p95=10.0), a_result(OURS, 2, p95=14.0)]
    table = standings_table(standings(results, (OURS,), bounds=bounds))
    assert table.rows[0] == (
        "LeastHarm",
        "6.00 (5.00–7.00)",
        "12.0 (10.0–14.0)",
        "24.0 (20.0–28.0)",
        "90.0%",
        "3.00 (2.50–3.50)",
        "1.00",
    )
    assert table.rows[1][0] == "clairvoyant bound"
    assert (table.best, table.faint) == (frozenset({0}), frozenset({1}))


def test_behind_is_in_points_where_the_best_is_picked_by_attainment() -> None:
    results = [a_result(OURS, attainment=0.95), a_result(PLAIN, attainment=0.9)]
    found = standings(results, (OURS, PLAIN), measure=Measure.ATTAINMENT)
    assert standings_table(found).rows[1][-1] == "5.0 points"
    assert "RoundRobin, by 5.0 points" in conclusion(found)[0]


def test_queries_without_an_answer_are_told_with_their_reason(contest: Contest) -> None:
    lost = a_result(OURS, p95=inf, reasons={"NoInstance": 7})
    found = standings([lost], (OURS,))
    report = contest_report(contest, found, title="t", facts=[], notes=[])
    assert "7 of 100 queries have no answer (NoInstance 7)" in report.notes[-1]
    assert standings_table(found).rows[0][2] == "∞"


def test_the_data_is_json_without_infinities(contest: Contest, found: Standings) -> None:
    data = contest_data(contest, found, notes=["n"], load=0.5)
    text = json.dumps(data, allow_nan=False)
    assert json.loads(text)["best"] == found.best.label
    assert data["policies"][0]["p95"]["median"] == found.best.p95.median
    assert [run["seed"] for run in data["policies"][0]["runs"]] == [1, 2]
    assert len(data["policies"][0]["atRates"]) == 2
    lost = standings([a_result(OURS, p95=inf)], (OURS,))
    assert contest_data(contest, lost, notes=[], load=None)["policies"][0]["p95"]["median"] is None


def test_the_load_is_the_rate_over_what_no_placement_could_pass(contest: Contest) -> None:
    share = load(contest)
    assert share is not None
    assert 0 < share < 1
