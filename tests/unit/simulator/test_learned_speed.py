"""What the kernel learns of an instance's speed in the middle of traffic, where prompts stop what decodes."""

from collections import Counter

import pytest

from hexflow_scheduler import Estimates, Policy, Send, decode
from hexflow_scheduler.eventlog import apply, kernel_of
from hexflow_simulator.fleet import FleetChange, FleetEvent
from hexflow_simulator.scenario import scenario_named
from hexflow_simulator.simulation import simulate


def test_an_instance_at_half_speed_unannounced_is_known_within_a_quarter_after_twenty_calls() -> None:
    scenario = scenario_named("S1")
    fleet = scenario.fleet
    slow, *others = (each.instance.instance_id for each in fleet)
    lines: list[str] = []
    simulate(
        scenario.queries(11, load=0.6, count=60),
        fleet,
        Policy.named("LeastHarm"),
        events=[FleetEvent(at=40.0, instance_id=slow, kind=FleetChange.SLOWS, factor=2.0)],
        sink=lines.append,
    )
    start, *records = (decode(line) for line in lines)
    kernel, runs_on, seen, learned = kernel_of(start), {}, Counter[str](), 0.0
    for record in records:
        apply(kernel, record)
        runs_on.update(
            {each.call_id: each.instance_id for each in record.decisions if isinstance(each, Send)}
        )
        if record.input == "finished" and record.now > 40.0:
            instance_id = runs_on[record.arguments["call_id"]]
            seen[instance_id] += 1
            if instance_id == slow and seen[slow] == 20:
                _, learned = kernel.estimates.scales(slow)
    assert 1.5 <= learned <= 2.5
    # Those that keep their speed are not taken for slow because they are busy.
    assert all(0.8 <= scale <= 1.25 for other in others for scale in kernel.estimates.scales(other))


@pytest.mark.parametrize("streamed", [False, True])
def test_instances_that_keep_their_profiles_are_thought_to(streamed: bool) -> None:
    scenario = scenario_named("S1")
    estimates = Estimates()
    simulate(
        scenario.queries(3, load=0.7, count=40),
        scenario.fleet,
        Policy.named("LeastHarm"),
        estimates=estimates,
        streamed=streamed,
    )
    for each in scenario.fleet:
        assert estimates.scales(each.instance.instance_id) == pytest.approx((1.0, 1.0), abs=0.25)


def test_a_stream_has_its_first_token_after_it_was_sent_also_where_its_instance_changes_pace() -> None:
    scenario = scenario_named("S1")
    first, second, *_ = (each.instance.instance_id for each in scenario.fleet)
    lines: list[str] = []
    simulate(
        scenario.queries(3, load=0.7, count=40),
        scenario.fleet,
        Policy.named("RoundRobin"),
        events=[
            FleetEvent(at=20.0, instance_id=first, kind=FleetChange.SLOWS, factor=2.0),
            FleetEvent(at=25.0, instance_id=second, kind=FleetChange.DIES),
            FleetEvent(at=35.0, instance_id=first, kind=FleetChange.SLOWS, factor=0.5),
            FleetEvent(at=45.0, instance_id=second, kind=FleetChange.RETURNS),
            FleetEvent(at=50.0, instance_id=first, kind=FleetChange.RETURNS),
        ],
        sink=lines.append,
        streamed=True,
    )
    ended = [record for record in map(decode, lines[1:]) if record.input == "finished"]
    assert all(record.arguments["usage"].first_token_seconds > 0 for record in ended)
    assert len(ended) > 400
