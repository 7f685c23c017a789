"""The grid: what is run, what is claimed of it, and the page that says so."""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hexflow_simulator.benchmark import run_grid
from hexflow_simulator.comparison import CellComparison
from hexflow_simulator.grid import Grid, claims, gpu_types, is_large, is_unequal
from hexflow_simulator.gridreport import grid_report, markdown
from hexflow_simulator.ledger import Ledger, LedgerError, read_results
from hexflow_simulator.measure import Figures
from hexflow_simulator.rates import Quest, find, quests_of, rate_table, run_quests
from hexflow_simulator.trial import CLAIRVOYANT, Trial, TrialResult, run_trial

RIVALS = ("RoundRobin", "HexGenFlow")
SMALL = Grid(
    scenarios=("S1", "S7"),
    loads=(0.8,),
    rivals=RIVALS,
    tuning_seeds=(1,),
    seeds=(11, 12),
    count=12,
    knobs={"RoundRobin": [{}], "HexGenFlow": [{"beta": 0.1}, {"beta": 10.0}]},
)


def a_result(trial: Trial, *, p95: float) -> TrialResult:
    """Return a result with made-up figures."""
    figures = Figures(
        queries=10,
        answered=1.0,
        mean=1.0,
        p50=p95 / 2,
        p95=p95,
        p99=p95,
        attainment=1.0,
        req95=p95,
        req99=p95,
    )
    return TrialResult(trial=trial, figures=figures, calls=10, cpu_seconds=0.1)


def made_up(grid: Grid, p95s: Mapping[str, float]) -> dict[str, TrialResult]:
    """Return results for every trial of a grid, the P95 of each policy in all of its cells the same."""
    results: dict[str, TrialResult] = {}
    for cell in grid.cells:
        for trial in grid.tuning(cell):
            results[trial.key] = a_result(trial, p95=p95s[trial.policy])
        for trial in grid.measuring(cell, results):
            results[trial.key] = a_result(trial, p95=p95s[trial.policy])
    return results


def page(grid: Grid, cells: Sequence[CellComparison], **told: Any) -> str:
    """Return the page of some cells."""
    return markdown(grid_report(grid, cells, code="abc1234", **told))


P95S = {"LeastHarm": 10.0, "RoundRobin": 30.0, "HexGenFlow": 12.0, CLAIRVOYANT: 8.0}


def test_a_grid_knows_how_many_trials_it_has() -> None:
    assert len(made_up(SMALL, P95S)) == SMALL.size == 2 * (2 + 4 * 2)


def test_rivals_are_tuned_on_half_of_the_queries() -> None:
    (cell, _) = SMALL.cells
    assert {trial.count for trial in SMALL.tuning(cell)} == {6}
    whole = Grid(scenarios=("S9",), loads=(0.8,))
    assert {trial.count for trial in whole.tuning(whole.cells[0])} == {1000}


def test_claims_say_what_was_found() -> None:
    cells = [*SMALL.comparisons(made_up(SMALL, P95S))]
    found = {claim.text: claim for claim in claims(cells, RIVALS)}
    worst = found["P95, worst cell: best baseline over ours"]
    assert worst.found == pytest.approx(1.2)
    assert (worst.cells, worst.holds) == (2, True)
    single = found["P95, median of all cells: RoundRobin over ours"]
    assert single.found == pytest.approx(3.0)
    assert single.holds
    unequal = found["P95, median of unequal fleets at load >= 0.8: best baseline over ours"]
    assert unequal.cells == 1


def test_the_page_names_cells_claims_and_what_is_lost() -> None:
    results = made_up(SMALL, P95S)
    text = page(SMALL, [*SMALL.comparisons(results)])
    assert "Results of: abc1234" in text
    assert "| S7 | 0.8 | HexGenFlow (beta 0.1) | 1.200 (1.20-1.20) |" in text
    assert "| 8.0 | 1.25 |" in text  # the bound, and how far above it we are
    assert "Of 2 cells LeastHarm wins 2 and loses 0" in text
    lost = made_up(SMALL, {**P95S, "HexGenFlow": 8.0})
    text = page(SMALL, [*SMALL.comparisons(lost)])
    assert "wins 0 and loses 2 by the median of P95, 2 of them by more than 1%" in text
    assert "does not hold" in text


def test_a_page_of_some_of_the_cells_says_how_many_are_missing() -> None:
    results = made_up(SMALL, P95S)
    some = {key: result for key, result in results.items() if "S7" not in key}
    text = page(SMALL, [*SMALL.comparisons(some)])
    assert "1 of 2 are complete" in text
    assert "No cell is complete yet" in page(SMALL, [])


def test_results_without_bounds_have_a_page_too() -> None:
    results = {key: each for key, each in made_up(SMALL, P95S).items() if each.trial.policy != CLAIRVOYANT}
    (first, _) = SMALL.comparisons(results)
    assert first.bound is None
    assert "S1" in page(SMALL, [first])


def test_a_grid_runs_cell_by_cell_and_goes_on_where_it_was(tmp_path: Path) -> None:
    grid = replace(SMALL, scenarios=("S1",), rivals=("RoundRobin",), seeds=(11,))
    seen: list[tuple[int, int]] = []
    with Ledger(tmp_path / "r.jsonl", code="abc") as ledger:
        (first,) = run_grid(grid, ledger, workers=1, progress=lambda *told: seen.append(told))
        assert len(ledger) == grid.size == 3
    assert seen[-1] == (3, 3)
    assert first.bound is not None
    assert first.bound.p95_ours_over.low >= 1
    with Ledger(tmp_path / "r.jsonl", code="abc") as ledger:
        size = ledger.path.stat().st_size
        assert [*run_grid(grid, ledger, workers=1)] == [first]
        assert ledger.path.stat().st_size == size


def test_the_bound_is_below_every_policy() -> None:
    cell = SMALL.cells[0]
    bound = run_trial(cell.trial(CLAIRVOYANT, 11))
    for policy in ("LeastHarm", "RoundRobin"):
        found = run_trial(cell.trial(policy, 11)).figures
        assert bound.figures.p50 <= found.p50
        assert bound.figures.p95 <= found.p95


def test_packed_results_are_read_too(tmp_path: Path) -> None:
    with Ledger(tmp_path / "r.jsonl", code="abc") as ledger:
        ledger.add(a_result(SMALL.cells[0].trial("RoundRobin", 1), p95=3.0))
        kept = dict(ledger.by_key)
    packed = tmp_path / "r.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "r.jsonl").read_bytes()))
    assert read_results(packed) == ("abc", kept)
    (tmp_path / "bad.gz").write_bytes(b"no archive")
    with pytest.raises(LedgerError, match="no file of benchmark results"):
        read_results(tmp_path / "bad.gz")


@pytest.mark.parametrize(
    ("scenario", "unequal", "types", "large"),
    [
        ("S1", True, 2, False),
        ("S6", True, 3, True),
        ("S7", False, 1, False),
        ("S11", True, 3, False),
        ("S9", True, 4, True),
    ],
)
def test_scenarios_are_told_apart_by_their_fleets(
    scenario: str, unequal: bool, types: int, large: bool
) -> None:
    assert (is_unequal(scenario), gpu_types(scenario), is_large(scenario)) == (unequal, types, large)


def rates(loads: Mapping[str, Sequence[float]]) -> dict[Quest, float]:
    """Return what quests found, by policy and seed."""
    return {
        Quest(scenario="S1", policy=policy, parameters=(), seed=seed, count=12): load
        for policy, found in loads.items()
        for seed, load in enumerate(found)
    }


def test_rates_are_compared_seed_by_seed_with_the_best_rival() -> None:
    found = rates({"LeastHarm": (1.2, 1.5), "RoundRobin": (0.4, 0.5), "HexGenFlow": (1.0, 1.0)})
    table = rate_table(found, seeds=(0, 1))
    (row,) = table.rows
    assert row.best_over == pytest.approx(1.35)
    assert row.plain_over == pytest.approx(3.0)
    assert [claim.found for claim in table.claims] == pytest.approx([1.35, 3.0])
    assert all(claim.holds for claim in table.claims)
    assert table.policies[:2] == ["LeastHarm", "RoundRobin"]
    assert "1.35 | 3.00" in page(SMALL, [], rates=table)


def test_a_rate_is_looked_for_among_what_is_known_first() -> None:
    quest = Quest(scenario="S1", policy="LeastHarm", parameters=(), seed=1, count=12)
    load, made = find(quest, {})
    assert load > 0
    assert made
    again, nothing = find(quest, {result.trial.key: result for result in made})
    assert (again, nothing) == (load, [])
    assert all(result.figures.req95 <= 3 for result in made if result.trial.load <= load)


def test_quests_keep_what_they_ran(tmp_path: Path) -> None:
    quests = quests_of("S1", {"RoundRobin": {}}, seeds=(1,), count=10)
    with Ledger(tmp_path / "r.jsonl", code="abc") as ledger:
        found = run_quests(quests, ledger, workers=1)
        count = len(ledger)
        assert count > 2
        assert run_quests(quests, ledger, workers=1) == found
        assert len(ledger) == count
