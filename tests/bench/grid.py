# ruff: noqa: T201  It is run by hand, and what it prints is its result.
"""LeastHarm against every baseline, each tuned in every cell: ``make bench-grid`` (hours; goes on where it was).

Prints one line for each cell as it is complete. Run it with ``PYTHONPATH=build/compiled`` after
``make compiled``: it is several times as fast and finds the same.
"""

import argparse
from pathlib import Path

from hexflow_simulator.comparison import compare
from hexflow_simulator.grid import LOADS, OURS, SEEDS, TUNING_SEEDS, Grid, claims
from hexflow_simulator.knobs import BASELINES
from hexflow_simulator.ledger import Ledger
from hexflow_simulator.scenario import SCENARIOS
from hexflow_simulator.trials import run_trials


def main() -> None:
    """Run what is missing, then print the claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--code", required=True, help="commit that runs")
    parser.add_argument("--scenarios", nargs="*", default=[*SCENARIOS])
    parser.add_argument("--loads", nargs="*", type=float, default=[*LOADS])
    parser.add_argument("--seeds", nargs="*", type=int, default=[*SEEDS])
    parser.add_argument("--tuning-seeds", nargs="*", type=int, default=[*TUNING_SEEDS])
    parser.add_argument("--rivals", nargs="*", default=[*dict.fromkeys(BASELINES.values())])
    parser.add_argument("--ours", default=OURS)
    parser.add_argument("--count", type=int, default=None)
    parser.add_argument("--workers", type=int, default=None)
    given = parser.parse_args()
    grid = Grid(
        scenarios=given.scenarios,
        loads=given.loads,
        ours=given.ours,
        rivals=given.rivals,
        tuning_seeds=given.tuning_seeds,
        seeds=given.seeds,
        count=given.count,
    )
    with Ledger(given.results, code=given.code) as ledger:
        for cell in grid.cells:
            run_trials(grid.tuning(cell), ledger, workers=given.workers)
            run_trials(grid.measuring(cell, ledger.by_key), ledger, workers=given.workers)
            chosen = grid.chosen(cell, ledger.by_key)
            found = compare(cell, grid.ours, chosen, grid.seeds, ledger.by_key)
            print(
                f"{cell.scenario:4} at {cell.load:<4} ours {found.ours.p50.median:6.1f} / {found.ours.p95.median:6.1f}; best"
                f" {found.best.policy} {dict(found.best.settings)}: P95 {found.best.p95_over_ours},"
                f" P50 {found.best.p50_over_ours}",
                flush=True,
            )
        for claim in claims([*grid.comparisons(ledger.by_key)], grid.rivals):
            print(
                f"{'holds' if claim.holds else 'FAILS'}  {claim.found:6.3f} (wanted {claim.wanted}) over {claim.cells} cells: {claim.text}"
            )


if __name__ == "__main__":
    main()
