"""The benchmark at work: the cells of a grid one after the other, whatever is there already left out."""

from collections.abc import Callable, Iterator
from itertools import islice

from hexflow_simulator.comparison import CellComparison, compare
from hexflow_simulator.grid import Grid
from hexflow_simulator.ledger import Ledger
from hexflow_simulator.trials import run_trials

BATCH = 4
"""Cells that are run together, so that a processor that has none left of one works on the next."""

Progress = Callable[[int, int], None]
"""Is told how many trials of the grid are there, of how many."""


def run_grid(
    grid: Grid, ledger: Ledger, *, workers: int | None = None, progress: Progress | None = None
) -> Iterator[CellComparison]:
    """Run what the ledger lacks and yield each cell as soon as it is complete."""
    done, size = 0, grid.size

    def tell(here: int) -> None:
        if progress is not None:
            progress(done + here, size)

    cells = iter(grid.cells)
    while batch := list(islice(cells, BATCH)):
        tuning = [trial for cell in batch for trial in grid.tuning(cell)]
        run_trials(tuning, ledger, workers=workers, progress=lambda here, _, __: tell(here))
        done += len(set(tuning))
        measuring = [trial for cell in batch for trial in grid.measuring(cell, ledger.by_key)]
        run_trials(measuring, ledger, workers=workers, progress=lambda here, _, __: tell(here))
        done += len(set(measuring))
        for cell in batch:
            chosen = grid.chosen(cell, ledger.by_key)
            yield compare(cell, grid.ours, chosen, grid.seeds, ledger.by_key)
