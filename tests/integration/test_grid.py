"""The benchmark in small: four cells at two loads on two seeds, enough to see who is ahead.

The whole is `make bench-grid`; its results are in docs/explanation/benchmark.md.
"""

from pathlib import Path
from statistics import median

import pytest

from hexflow_simulator.benchmark import run_grid
from hexflow_simulator.grid import Grid
from hexflow_simulator.ledger import Ledger

GRID = Grid(
    scenarios=("S1", "S4", "S6", "X1"),
    loads=(0.8, 1.1),
    rivals=("RoundRobin", "EarliestFinish", "HexGenFlow"),
    tuning_seeds=(1,),
    seeds=(11, 12),
    count=100,
    knobs={"HexGenFlow": [{"beta": 0.3}, {"beta": 3.0}]},
)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_our_policy_is_ahead_of_every_baseline_that_is_tuned_for_its_cell(tmp_path: Path) -> None:
    with Ledger(tmp_path / "results.jsonl", code="this") as ledger:
        cells = [*run_grid(GRID, ledger)]
    found = {f"{each.cell.scenario} at {each.cell.load}": each.best for each in cells}
    assert len(cells) == 8
    # So few queries leave noise of some percent in a cell, and none in the sign of the whole.
    assert {name: best for name, best in found.items() if best.p95_over_ours.median < 0.95} == {}
    assert {name: best for name, best in found.items() if best.p50_over_ours.median < 0.95} == {}
    assert median(best.p95_over_ours.median for best in found.values()) > 1.05
    for each in cells:
        plain = each.rival("RoundRobin")
        assert plain is not None
        assert plain.p95_over_ours.low > 1, each.cell
        assert each.bound is not None
        assert each.bound.p95_ours_over.low >= 1, each.cell
