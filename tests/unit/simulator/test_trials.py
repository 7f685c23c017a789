"""Trials, the ledger they are kept in, and what is made of them."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from hexflow_simulator.comparison import best_settings, compare, measuring_trials, tuning_trials
from hexflow_simulator.ledger import Ledger, LedgerError, read_results
from hexflow_simulator.measure import Figures
from hexflow_simulator.trial import Cell, Trial, TrialResult, run_trial
from hexflow_simulator.trials import interleaved, run_trials

CELL = Cell(scenario="S1", load=0.4, count=12)


def a_result(trial: Trial, *, p95: float, p50: float = 1.0) -> TrialResult:
    """Return a result with made-up figures."""
    figures = Figures(
        queries=10, answered=1.0, mean=1.0, p50=p50, p95=p95, p99=p95, attainment=1.0, req95=p95, req99=p95
    )
    return TrialResult(trial=trial, figures=figures, calls=10, cpu_seconds=0.1)


def test_a_trial_says_the_same_each_time_it_is_run() -> None:
    trial = CELL.trial("RoundRobin", 1)
    assert run_trial(trial).figures == run_trial(trial).figures


def test_a_trial_of_another_policy_gets_the_same_work() -> None:
    one, other = (run_trial(CELL.trial(policy, 1)) for policy in ("RoundRobin", "HexGenFlow"))
    assert one.calls == other.calls
    assert one.figures != other.figures


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    trial = CELL.trial("HexGenFlow", 1, {"alpha": 0.25})
    with Ledger(tmp_path / "results.jsonl", code="abc") as ledger:
        run_trials([trial, trial], ledger, workers=1)
        kept = ledger[trial]
    with Ledger(tmp_path / "results.jsonl", code="abc") as ledger:
        assert (len(ledger), ledger[trial]) == (1, kept)


def test_a_benchmark_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    trials = [CELL.trial("RoundRobin", seed) for seed in (1, 2)]
    with Ledger(path, code="abc") as ledger:
        for trial in trials:
            ledger.add(a_result(trial, p95=7.0))
    path.write_bytes(path.read_bytes()[:-20])  # stopped in the middle of a line
    seen: list[tuple[int, int]] = []
    with Ledger(path, code="abc") as ledger:
        assert trials[1] not in ledger
        run_trials(trials, ledger, workers=1, progress=lambda done, of, _: seen.append((done, of)))
    assert seen == [(1, 2), (2, 2)]
    with Ledger(path, code="abc") as ledger:
        assert ledger[trials[0]].figures.p95 == 7.0
        assert ledger[trials[1]].figures.p95 != 7.0


def test_a_last_line_that_lacks_its_end_alone_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    trials = [CELL.trial("RoundRobin", seed) for seed in (1, 2)]
    with Ledger(path, code="abc") as ledger:
        ledger.add(a_result(trials[0], p95=7.0))
    path.write_bytes(path.read_bytes()[:-1])
    with Ledger(path, code="abc") as ledger:
        assert trials[0] in ledger
        ledger.add(a_result(trials[1], p95=8.0))
    with Ledger(path, code="abc") as ledger:
        assert [ledger[trial].figures.p95 for trial in trials] == [7.0, 8.0]


def test_packed_results_are_read_and_never_added_to(tmp_path: Path) -> None:
    path, packed = tmp_path / "results.jsonl", tmp_path / "results.jsonl.gz"
    trial = CELL.trial("RoundRobin", 1)
    with Ledger(path, code="abc") as ledger:
        ledger.add(a_result(trial, p95=7.0))
    packed.write_bytes(before := gzip.compress(path.read_bytes()))
    with pytest.raises(LedgerError, match="is packed"):
        Ledger(packed, code="abc")
    assert packed.read_bytes() == before
    code, results = read_results(packed)
    assert (code, results[trial.key].figures.p95) == ("abc", 7.0)


def test_results_of_other_code_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Ledger(path, code="abc"):
        pass
    with pytest.raises(LedgerError, match="results of abc, and this is abd"):
        Ledger(path, code="abd")


@pytest.mark.parametrize("text", ["", "arrival,tokens\n", '{"version": 1}\n', "[]\n"])
def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(LedgerError, match="no file of benchmark results"):
        Ledger(path, code="abc")
    assert path.read_text() == text


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Ledger(path, code="abc") as ledger:
        ledger.add(a_result(CELL.trial("RoundRobin", 1), p95=1.0))
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(LedgerError, match=r"results\.jsonl:3 is no result"):
        Ledger(path, code="abc")


def test_a_rival_is_tuned_on_other_seeds_than_it_is_compared_on() -> None:
    knobs = {"Rival": ({"x": 1.0}, {"x": 2.0})}
    tuning = tuning_trials(CELL, ["Ours", "Rival"], knobs, seeds=[1, 2])
    assert [trial.policy for trial in tuning] == ["Rival"] * 4
    results = {
        trial.key: a_result(trial, p95=5.0 if trial.parameters == (("x", 2.0),) else 9.0) for trial in tuning
    }
    settings = best_settings(CELL, "Rival", knobs, [1, 2], results)
    assert settings == {"x": 2.0}
    measuring = measuring_trials(CELL, {"Ours": {}, "Rival": settings}, seeds=[11])
    assert not {trial.key for trial in measuring} & results.keys()


def test_a_comparison_pairs_seeds_and_names_the_best_rival() -> None:
    chosen = {"Ours": {}, "Good": {}, "Poor": {"x": 3.0}}
    p95s = {"Ours": (10.0, 20.0, 30.0), "Good": (12.0, 20.0, 45.0), "Poor": (30.0, 30.0, 300.0)}
    results = {}
    for policy, values in p95s.items():
        for seed, value in enumerate(values):
            trial = CELL.trial(policy, seed, chosen[policy])
            results[trial.key] = a_result(trial, p95=value)
    found = compare(CELL, "Ours", chosen, [0, 1, 2], results)
    assert [rival.policy for rival in found.rivals] == ["Good", "Poor"]
    ratio = found.best.p95_over_ours
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx((1.2, 1.0, 1.5))
    poor = found.rival("Poor")
    assert poor is not None
    assert poor.settings == {"x": 3.0}
    assert found.rival("Nobody") is None


def test_trials_go_out_in_turn() -> None:
    one, two = [CELL.trial("RoundRobin", seed) for seed in (1, 2)], [CELL.trial("HexGenFlow", 1)]
    assert interleaved([one, two]) == [one[0], two[0], one[1]]


def test_a_key_tells_any_two_trials_apart() -> None:
    trial = CELL.trial("HexGenFlow", 1, {"alpha": 0.5, "beta": 0.25})
    others = [
        replace(trial, seed=2),
        replace(trial, load=0.6),
        replace(trial, scenario="S2"),
        replace(trial, policy="RoundRobin"),
        replace(trial, parameters=(("alpha", 0.5),)),
        replace(trial, count=None),
    ]
    assert len({each.key for each in [trial, *others]}) == 7
