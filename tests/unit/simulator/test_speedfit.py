"""What an event log tells of its fleet."""

from dataclasses import replace
from pathlib import Path

import pytest

from hexflow_scheduler import Policy
from hexflow_simulator import SimulatedInstance, simulate
from hexflow_simulator.complaint import InvalidTrace
from hexflow_simulator.scenario import scenario_named
from hexflow_simulator.speedfit import FEWEST_CALLS, by_pool, read_observed, refitted
from hexflow_simulator.tuning import SpeedFit
from support.tracefiles import a_file

SCENARIO = scenario_named("S1")


def a_fit(prefill: float = 1.0, decode: float = 1.0, **fields: object) -> SpeedFit:
    """Return a fit."""
    told = {"instance_id": "i", "pool": "p", "gpu_type": "G", "calls": 100} | fields
    return SpeedFit(prefill=prefill, decode=decode, **told)  # type: ignore[arg-type]


def a_fleet(*factors: float) -> list[SimulatedInstance]:
    """Return the scenario's fleet, each instance so many times as slow as it is believed to be."""
    return [
        replace(each, profile=refitted(each.instance.profile, a_fit(factor, factor)))
        for each, factor in zip(SCENARIO.fleet, factors, strict=True)
    ]


def a_log(
    folder: Path,
    fleet: list[SimulatedInstance],
    *,
    count: int = 60,
    policy: str = "LeastHarm",
    streamed: bool = False,
) -> Path:
    """Return the event log of a run."""
    lines: list[str] = []
    simulate(
        SCENARIO.queries(3, load=0.7, count=count),
        fleet,
        Policy.named(policy),
        sink=lines.append,
        streamed=streamed,
    )
    return a_file(folder, *lines, name="events.jsonl")


@pytest.mark.parametrize("streamed", [False, True])
def test_the_real_speed_of_each_instance_is_found(tmp_path: Path, streamed: bool) -> None:
    factors = (1.0, 1.6, 1.0, 0.7)
    observed = read_observed(a_log(tmp_path, a_fleet(*factors), streamed=streamed))
    assert [fit.instance_id for fit in observed.speeds] == [
        each.instance.instance_id for each in SCENARIO.fleet
    ]
    for fit, factor in zip(observed.speeds, factors, strict=True):
        if fit.calls >= FEWEST_CALLS:
            assert fit.decode == pytest.approx(factor, rel=0.05)
    assert sum(fit.calls >= FEWEST_CALLS for fit in observed.speeds) >= 3


def test_the_fleet_comes_back_as_it_was_believed_and_as_it_is(tmp_path: Path) -> None:
    observed = read_observed(a_log(tmp_path, list(SCENARIO.fleet), policy="HexGenFlow"))
    assert [each.instance for each in observed.fleet] == [each.instance for each in SCENARIO.fleet]
    assert observed.policy.name == "HexGenFlow"
    for each, fit in zip(observed.fleet, observed.speeds, strict=True):
        assert each.true_profile == refitted(each.instance.profile, fit)
    assert observed.estimates.query_seconds("natural") is not None
    assert observed.ended > 0


def test_an_instance_with_few_calls_keeps_its_profile(tmp_path: Path) -> None:
    observed = read_observed(a_log(tmp_path, a_fleet(2.0, 2.0, 2.0, 2.0), count=2))
    assert {(fit.prefill, fit.decode) for fit in observed.speeds} == {(1.0, 1.0)}


def test_a_log_that_cannot_be_followed_is_named_with_its_line(tmp_path: Path) -> None:
    log = a_log(tmp_path, list(SCENARIO.fleet), count=2)
    lines = log.read_text().splitlines()
    headless = a_file(tmp_path, *lines[1:], name="headless.jsonl")
    with pytest.raises(InvalidTrace, match="its head is missing"):
        read_observed(headless)
    finished = next(place for place, line in enumerate(lines) if '"finished"' in line)
    gap = a_file(
        tmp_path, *lines[:5], lines[finished].replace('"call_id":"', '"call_id":"no-'), name="gap.jsonl"
    )
    with pytest.raises(InvalidTrace, match=r"gap\.jsonl:6"):
        read_observed(gap)


def test_a_pool_is_as_fast_as_its_instances_are_each_by_its_calls() -> None:
    fits = [
        a_fit(1.0, 2.0, calls=100),
        a_fit(1.0, 8.0, calls=100),
        a_fit(9.0, 9.0, calls=FEWEST_CALLS - 1),
        a_fit(pool="other", calls=3),
    ]
    pools = by_pool(fits)
    assert pools["p"].decode == pytest.approx(4.0)
    assert pools["p"].prefill == pytest.approx(1.0)
    assert pools["p"].calls == 200 + FEWEST_CALLS - 1
    assert (pools["other"].prefill, pools["other"].decode) == (1.0, 1.0)
