"""The paper's gains, on its authors' settings: signs and rough sizes. ``make bench-paper`` has the figures."""

from collections.abc import Mapping
from statistics import median

import pytest

from hexflow_simulator.measure import paired_ratios
from hexflow_simulator.reproduction import BASELINE, OURS, PAPER, ROWS, Spot, run_scene
from hexflow_simulator.trial import TrialResult

SEEDS = (11, 12)
ALPHA: Mapping[str, Mapping[str, float]] = {PAPER: {"alpha": 0.3}, "WB+FCFS": {"alpha": 0.3}}
"""What tuning found on every trace."""


def results(spot: Spot, title: str) -> list[TrialResult]:
    return [run_scene(spot.trial(ROWS[title], seed, ALPHA.get(title, {}))) for seed in SEEDS]


@pytest.mark.parametrize(
    ("trace", "baseline", "paper"), [("trace1", (4.0, 7.0), (2.3, 4.0)), ("trace2", (7.0, 13.0), (3.8, 6.5))]
)
def test_hexgenflow_needs_the_slo_scales_that_were_found_before(
    trace: str, baseline: tuple[float, float], paper: tuple[float, float]
) -> None:
    spot = Spot(fleet="Hetero-2", trace=trace, rate=0.25)
    found = {title: results(spot, title) for title in (BASELINE, "RR+PQ", "WB+FCFS", PAPER, OURS)}
    scale = {title: median(each.figures.req95 for each in of) for title, of in found.items()}
    assert baseline[0] < scale[BASELINE] < baseline[1]
    assert paper[0] < scale[PAPER] < paper[1]
    p95 = {title: [each.figures.p95 for each in of] for title, of in found.items()}
    gain = {title: median(paired_ratios(p95[BASELINE], of)) for title, of in p95.items()}
    assert 1.3 < gain[PAPER] < 2.8
    assert 1.0 < gain["RR+PQ"] < gain[PAPER]
    assert 1.2 < gain["WB+FCFS"] < gain[PAPER] * 1.15
    assert gain[OURS] > gain[PAPER] * 0.9
