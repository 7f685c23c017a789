"""A command line describes traffic by a trace or by a mix, and what is lacking is said."""

from pathlib import Path
from typing import Any

import pytest

from hexflow_cli.exitcode import CommandError
from hexflow_cli.trafficoptions import TrafficOptions, traffic_of
from hexflow_simulator.complaint import InvalidTrace
from hexflow_simulator.fleetfile import FleetFile, read_fleet
from hexflow_simulator.traffic import Generated, Recorded
from support.tracefiles import HEADER, a_file, a_line

ROOT = Path(__file__).parents[3]
CODER = "Qwen/Qwen2.5-Coder-7B-Instruct"
OTHER = """---
apiVersion: hexflow.dev/v1alpha1
kind: GPUPool
metadata: {name: other}
spec: {gpuType: A100-80GB, model: {name: Qwen/Qwen2.5-Coder-32B-Instruct}, tensorParallelSize: 2}
"""


@pytest.fixture(scope="module")
def fleet() -> FleetFile:
    return read_fleet(ROOT / "examples/which-policy/fleet.yaml")


def a_csv(folder: Path, *lines: str) -> Path:
    return a_file(folder, "arrival_s,input_tokens,output_tokens", *lines, name="requests.csv")


def recorded(fleet: FleetFile, trace: Path, **changes: Any) -> Recorded:
    traffic = traffic_of(TrafficOptions(trace=trace, **changes), fleet)
    assert isinstance(traffic, Recorded)
    return traffic


def test_a_csv_is_served_by_the_only_model_and_gets_a_base_and_a_deadline(
    fleet: FleetFile, tmp_path: Path
) -> None:
    traffic = recorded(fleet, a_csv(tmp_path, "0,1000,100", "2,1000,100", "4,1000,100"))
    queries = list(traffic.queries(1))
    assert {query.model for query in queries} == {CODER}
    assert queries[0].base_seconds is not None
    assert queries[0].slo_seconds == pytest.approx(5 * queries[0].base_seconds)
    assert (traffic.name, traffic.count, traffic.rate) == ("requests.csv", 3, 0.75)


@pytest.mark.parametrize("rate", [None, 2.0])
def test_a_trace_that_takes_as_good_as_no_time_comes_at_once(
    fleet: FleetFile, tmp_path: Path, rate: float | None
) -> None:
    traffic = recorded(fleet, a_csv(tmp_path, "0,10,10", "5e-324,10,10"), rate=rate)
    assert traffic.rate == 0.0
    assert [query.arrival for query in traffic.queries(1)] == pytest.approx([0.0, 0.0])


def test_a_deadline_that_is_given_holds(fleet: FleetFile, tmp_path: Path) -> None:
    traffic = recorded(fleet, a_csv(tmp_path, "0,10,10", "2,10,10"), slo_seconds=9.0)
    assert {query.slo_seconds for query in traffic.queries(1)} == {9.0}


def test_a_rate_presses_a_trace(fleet: FleetFile, tmp_path: Path) -> None:
    traffic = recorded(fleet, a_csv(tmp_path, "0,10,10", "2,10,10", "8,10,10"), rate=3.0)
    assert traffic.rate == pytest.approx(3.0)
    assert [query.arrival for query in traffic.queries(1)] == pytest.approx([0.0, 0.25, 1.0])


def test_the_beginning_is_taken_by_queries_or_by_seconds(fleet: FleetFile, tmp_path: Path) -> None:
    path = a_csv(tmp_path, "0,10,10", "2,10,10", "8,10,10")
    assert recorded(fleet, path, queries=2).count == 2
    assert recorded(fleet, path, seconds=3.0).count == 2
    assert recorded(fleet, path, queries=99, seconds=99.0).count == 3


def test_a_model_that_nobody_serves_is_named_with_what_to_do(fleet: FleetFile, tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, a_line())
    with pytest.raises(
        CommandError, match=rf"asks for coder, and no instance .* --model \(the fleet has: {CODER}\)"
    ):
        recorded(fleet, path)
    assert {query.model for query in recorded(fleet, path, model=CODER).queries(1)} == {CODER}


def test_pools_that_are_not_there_are_named(fleet: FleetFile, tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, a_line(model=CODER, pools=["h100", "b200"]))
    with pytest.raises(CommandError, match="in the pools b200, h100"):
        recorded(fleet, path)


def test_a_bad_line_is_told_with_its_file_and_number(fleet: FleetFile, tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match=r"requests\.csv:3: an arrival at 1\.0, before that above it"):
        recorded(fleet, a_csv(tmp_path, "2,10,10", "1,10,10"))


def test_a_mix_has_a_rate_and_a_number_of_queries(fleet: FleetFile) -> None:
    traffic = traffic_of(TrafficOptions(mix="short", rate=2.0, databases=3), fleet)
    assert isinstance(traffic, Generated)
    assert (traffic.name, traffic.count, traffic.rate) == ("mix short", 500, 2.0)
    assert traffic_of(TrafficOptions(mix="short", rate=2.0, seconds=30.0), fleet).count == 60
    (query,) = list(
        traffic_of(TrafficOptions(mix="short", rate=2.0, queries=1, slo_seconds=7.0), fleet).queries(1)
    )
    assert query.slo_seconds == pytest.approx(7.0)
    assert query.model == CODER


def test_a_mix_comes_when_requests_of_a_recording_came(fleet: FleetFile, tmp_path: Path) -> None:
    path = a_file(tmp_path, "arrival_s", "0", "1", "5", name="arrivals.csv")
    traffic = traffic_of(TrafficOptions(mix="short", arrivals=path, queries=3), fleet)
    assert [query.arrival for query in traffic.queries(1)] == [0.0, 1.0, 5.0]
    assert traffic.rate == pytest.approx(0.4)


def test_of_several_models_one_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text((ROOT / "examples/which-policy/fleet.yaml").read_text() + OTHER)
    two = read_fleet(path)
    with pytest.raises(CommandError, match="several models"):
        traffic_of(TrafficOptions(mix="short", rate=1.0), two)
    assert traffic_of(TrafficOptions(mix="short", rate=1.0, model=CODER), two).count == 500
    requests = a_csv(tmp_path, "0,10,10", "2,10,10")
    with pytest.raises(CommandError, match="which the trace is for"):
        recorded(two, requests)
    assert {query.model for query in recorded(two, requests, model=CODER).queries(1)} == {CODER}
    # A trace that says its models needs no word.
    own = a_file(tmp_path, HEADER, a_line(model=CODER))
    assert recorded(two, own).count == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either --trace with a file, or --mix"),
        ({"mix": "short", "trace": Path("x")}, "either --trace with a file, or --mix"),
        ({"mix": "short"}, "--rate 0.5"),
        ({"mix": "short", "rate": 1.0, "model": "gpt"}, "No instance serves gpt"),
        ({"mix": "short", "cv": 2.0, "arrivals": Path("x")}, "give one of them"),
        ({"trace": Path("x"), "cv": 2.0}, "--cv goes with --mix"),
        ({"trace": Path("x"), "databases": 2}, "--databases goes with --mix"),
        ({"trace": Path("x"), "arrivals": Path("x")}, "--arrivals goes with --mix"),
    ],
)
def test_what_does_not_say_what_arrives_is_told(
    fleet: FleetFile, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        traffic_of(TrafficOptions(**options), fleet)
