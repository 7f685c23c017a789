"""Trials over several processes."""

from pathlib import Path

from hexflow_simulator.ledger import Ledger
from hexflow_simulator.trial import Cell, run_trial
from hexflow_simulator.trials import run_trials

CELL = Cell(scenario="S1", load=0.4, count=12)


def test_trials_run_side_by_side_as_they_do_alone(tmp_path: Path) -> None:
    trials = [CELL.trial("RoundRobin", seed) for seed in (1, 2, 3)]
    with Ledger(tmp_path / "results.jsonl", code="abc") as ledger:
        run_trials(trials, ledger, workers=2)
        assert [ledger[trial].figures for trial in trials] == [run_trial(trial).figures for trial in trials]
