"""The page of the paper's figures and ours."""

import re

import pytest

from hexflow_simulator.measure import Figures
from hexflow_simulator.paperpage import page
from hexflow_simulator.trial import Trial, TrialResult

P95 = {"RoundRobin": 150.0, "HexGenFlowLiteral+LatestStart": 100.0, "LeastHarm": 80.0}


class Results(dict[str, TrialResult]):
    """Results of every trial of some fleets: a policy's P95 does not hang on the rate, its Req95 is 10 at 1 query/s."""

    def __init__(self, *fleets: str) -> None:
        super().__init__()
        self.fleets = fleets

    def __missing__(self, key: str) -> TrialResult:
        found = re.fullmatch(r"(.+)/(.+) at (\S+) by ([^( ]+)\S* seed (\d+)", key)
        assert found is not None
        if not found[1].startswith(self.fleets):
            raise KeyError(key)
        seconds = P95.get(found[4], 120.0)
        req95 = 10 * float(found[3]) * seconds / 100
        return TrialResult(
            trial=Trial(scenario=found[1], load=float(found[3]), policy=found[4], seed=int(found[5])),
            figures=Figures(
                queries=1,
                answered=1,
                mean=1,
                p50=60,
                p95=seconds,
                p99=1,
                attainment=1,
                req95=req95,
                req99=1,
            ),
            calls=1,
            cpu_seconds=0,
        )


def test_the_page_puts_what_was_published_beside_ours_and_says_what_is_above() -> None:
    text = page(Results("Hetero", "Homo"), code="abc", causes="## Why\n\nBecause.")
    assert "| P95, 0.5 queries/s | 1.42-1.56 | 1.48-1.52 | 1.50 (1.50-1.50) | within | within |" in text
    assert "| P95, 0.25 queries/s | 1.42-1.56 | 1.85-2.06 | 1.50 (1.50-1.50) | within | **below** |" in text
    assert "is at least as good as the paper's policy in 27 of 27 cells" in text
    assert "from commit abc" in text
    assert text.index("Because.") < text.index("## Settings")


def test_a_rate_is_sustained_up_to_the_scale() -> None:
    text = page(Results("Hetero", "Homo"), code="abc", causes="")
    row = next(line for line in text.splitlines() if line.startswith("| trace2 | 0."))
    rates = [float(cell) for cell in row.split("|")[2:5]]
    assert rates == pytest.approx([5 / 15, 5 / 10, 5 / 8], rel=0.03)


def test_a_fleet_that_is_not_complete_is_left_out_and_named() -> None:
    text = page(Results("Hetero-2"), code="abc", causes="")
    assert "**Not run yet: Hetero-1, Homo.**" in text
    assert "## Homo" not in text


def test_there_is_no_page_without_the_main_fleet() -> None:
    with pytest.raises(KeyError):
        page(Results("Homo"), code="abc", causes="")
