"""What a run of the tuner decides, from logs that the simulator has written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hexflow_api import TextToSQLWorkflow
from hexflow_api.tuned import Outcome, Tuned, TunedParameters, read_tuned
from hexflow_scheduler import Parameters, Policy
from hexflow_simulator import SimulatedQuery, simulate
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.observing import look, timeliness
from hexflow_simulator.retune import Memory, Retuned, nothing_to_learn, read_memory, retune, stamp
from support.engine_model import ROUND
from support.resources import a_workflow
from support.simulated import a_call, a_query, a_stage, instances
from support.tracefiles import a_file

NOW = 1_796_000_000.0
QUERIES = 36
EVERY = 300.0
SLOW = replace(ROUND, t0=6 * ROUND.t0, t1=6 * ROUND.t1, t2=6 * ROUND.t2, c1=6 * ROUND.c1)


def unequal() -> list[SimulatedInstance]:
    """Return a fast instance and one that takes six times as long."""
    fast, slow = instances(2)
    return [fast, replace(slow, instance=replace(slow.instance, profile=SLOW))]


def rare(count: int = QUERIES, *, slo_seconds: float = 60.0, workflow: str = "shop") -> list[SimulatedQuery]:
    """Return queries of two calls that hardly ever meet: the fast instance is always the better one."""
    stage = a_stage("draft", a_call(100, 200), a_call(100, 200))
    return [
        a_query(
            f"q{number}",
            stage,
            arrival=NOW - EVERY * (count - number),
            slo_seconds=slo_seconds,
            workflow=workflow,
        )
        for number in range(count)
    ]


def a_log(
    folder: Path, queries: list[SimulatedQuery], *, alpha: float = 0.0, policy: str = "HexGenFlow"
) -> Path:
    """Return the log of a router that served the queries; alpha 0 sends one call of each to the slow instance."""
    lines: list[str] = []
    given = {"shop": Parameters(alpha=alpha)} if policy == "HexGenFlow" else {}
    simulate(queries, unequal(), Policy.named(policy), sink=lines.append, parameters=given)
    return a_file(folder, *lines, name="events.jsonl")


def workflow(mode: str = "Auto", *, alpha: dict[str, Any] | None = None, **tuning: Any) -> TextToSQLWorkflow:
    scheduling = {"policy": "HexGenFlow", "alpha": alpha or {"seed": 0.0, "min": 0.0, "max": 1.0}}
    wanted = {"mode": mode, "minQueries": 20, **tuning}
    return a_workflow("shop", scheduling=scheduling, tuning=wanted)


def config_map(found: Retuned) -> dict[str, Any]:
    return {"data": dict(found.data)}


def a_change(alpha: float, *, before: float, at: float, attainment: float = 1.0) -> dict[str, Any]:
    """Return the ConfigMap after a change."""
    memory = Memory(changed_at=at, before=before, attainment=attainment, queries=100)
    in_force = TunedParameters(values={"alpha": alpha}, since=stamp(at))
    data = Tuned(in_force=in_force, outcome=Outcome(reason="Tuned")).as_data()
    return {"data": {**data, "memory.json": memory.as_text()}}


def test_what_is_better_comes_into_force_by_one_step_and_is_remembered(tmp_path: Path) -> None:
    log = a_log(tmp_path, rare())
    found = retune(workflow(), None, log, now=NOW)
    tuned = read_tuned(config_map(found))
    assert tuned.in_force is not None
    assert tuned.in_force.values == {"alpha": pytest.approx(0.2)}
    assert tuned.in_force.since == stamp(NOW)
    assert tuned.recommended is None
    assert tuned.outcome == Outcome(reason="Tuned", message="alpha was 0 and is 0.2")
    memory = read_memory(config_map(found))
    assert (memory.changed_at, memory.before, memory.queries) == (NOW, 0.0, QUERIES)
    assert memory.attainment == timeliness(log, "shop").share
    written = json.loads(found.data["parameters.json"])
    assert len(written["trace"]) == 64
    assert written["gain"] > 0
    assert written["mode"] == "Auto"
    step = retune(workflow(maxStep=0.05), None, log, now=NOW)
    assert read_tuned(config_map(step)).in_force == TunedParameters(values={"alpha": 0.05}, since=stamp(NOW))


def test_mode_recommend_puts_nothing_in_force(tmp_path: Path) -> None:
    found = retune(workflow("Recommend"), None, a_log(tmp_path, rare()), now=NOW)
    tuned = read_tuned(config_map(found))
    assert tuned.in_force is None
    assert tuned.recommended is not None
    assert tuned.recommended.values["alpha"] > 0
    assert tuned.outcome == Outcome(reason="Tuned", message="alpha 0.2 would serve better than 0")


def test_what_is_best_already_stays(tmp_path: Path) -> None:
    before = a_change(1.0, before=0.8, at=NOW - 1e6)
    found = retune(workflow(), before, a_log(tmp_path, rare(), alpha=1.0), now=NOW)
    tuned = read_tuned(config_map(found))
    assert tuned.in_force == read_tuned(before).in_force
    assert tuned.outcome is not None
    assert tuned.outcome.reason == "Tuned"
    assert "alpha stays at 1" in tuned.outcome.message


def test_a_thin_or_an_old_trace_teaches_nothing(tmp_path: Path) -> None:
    log = a_log(tmp_path, rare(10))
    for there in (None, a_change(0.4, before=0.2, at=NOW - 1e6)):
        found = retune(workflow("Recommend"), there, log, now=NOW)
        tuned = read_tuned(config_map(found))
        assert tuned.outcome is not None
        assert tuned.outcome.reason == "TooFewQueries"
        assert "fewer than 20 queries (minQueries)" in tuned.outcome.message
        assert tuned.in_force == read_tuned(there).in_force
    old = a_log(tmp_path, rare())
    found = retune(workflow(windowSeconds=3600), None, old, now=NOW + 7200)
    assert read_tuned(config_map(found)).outcome == Outcome(
        reason="TooFewQueries",
        message="fewer than 20 queries (minQueries) have ended in 3600 s (windowSeconds), or none of late",
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}\n",
        "no log\n",
        '{"v":2,"n":0,"t":0,"input":"start","with":{"dispatch":"Newer"},"decisions":[]}\n',
    ],
)
def test_a_log_that_cannot_be_read_teaches_nothing(tmp_path: Path, text: str) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text(text)
    before = a_change(0.4, before=0.2, at=NOW - 1e6)
    found = retune(workflow(), before, log, now=NOW)
    tuned = read_tuned(config_map(found))
    assert tuned.outcome is not None
    assert tuned.outcome.reason == "TooFewQueries"
    assert str(tmp_path) not in tuned.outcome.message
    assert tuned.in_force == read_tuned(before).in_force
    assert read_memory(config_map(found)) == read_memory(before)


def test_a_change_is_watched_before_the_next_one(tmp_path: Path) -> None:
    log = a_log(tmp_path, rare())
    before = a_change(0.2, before=0.0, at=NOW - 10 * EVERY)
    found = retune(workflow(), before, log, now=NOW)
    tuned = read_tuned(config_map(found))
    assert tuned.in_force == read_tuned(before).in_force
    assert tuned.outcome is not None
    assert "is judged when 20 queries have ended since" in tuned.outcome.message
    assert read_memory(config_map(found)) == read_memory(before)


def test_a_change_after_which_fewer_were_in_time_is_taken_back_and_left_alone_for_a_while(
    tmp_path: Path,
) -> None:
    tight = a_log(tmp_path, rare(slo_seconds=12.0))
    share = timeliness(tight, "shop").share
    assert share < 0.5, "the test needs queries that are late on the slow instance"
    before = a_change(0.0, before=0.7, at=NOW - 30 * EVERY, attainment=0.98)
    found = retune(workflow(), before, tight, now=NOW)
    tuned = read_tuned(config_map(found))
    assert tuned.in_force == TunedParameters(values={"alpha": 0.7}, since=stamp(NOW))
    assert tuned.outcome is not None
    assert tuned.outcome.reason == "RolledBack"
    assert tuned.outcome.message.startswith("alpha is 0.7 again: with 0 ")
    later = retune(workflow(), config_map(found), tight, now=NOW + 1800)
    assert later.data == found.data
    rested = retune(workflow(), config_map(found), tight, now=NOW + 4000)
    assert read_memory(config_map(rested)).taken_back_at is None


def test_a_change_that_held_what_it_promised_is_followed_by_the_next(tmp_path: Path) -> None:
    easy = a_log(tmp_path, rare(), alpha=0.0)
    before = a_change(0.0, before=0.2, at=NOW - 30 * EVERY, attainment=timeliness(easy, "shop").share)
    found = retune(workflow(), before, easy, now=NOW)
    assert read_memory(config_map(found)).changed_at == NOW
    tuned = read_tuned(config_map(found))
    assert tuned.in_force is not None
    assert tuned.in_force.values["alpha"] == pytest.approx(0.2)


def test_what_is_pinned_or_of_another_policy_is_left_alone(tmp_path: Path) -> None:
    log = a_log(tmp_path, rare())
    found = retune(workflow(alpha={"value": 0.3}), a_change(0.5, before=0.2, at=NOW), log, now=NOW)
    assert set(found.data) == {"outcome.json"}
    assert "no parameter of HexGenFlow is open to tuning" in found.said
    other = a_log(tmp_path, rare(), policy="RoundRobin")
    found = retune(workflow(), None, other, now=NOW)
    assert "the policy in force is RoundRobin" in found.said


def test_a_log_whose_beginning_is_lost_is_learned_from_all_the_same(tmp_path: Path) -> None:
    start, *others = a_log(tmp_path, rare()).read_text().splitlines()
    begun = NOW - (QUERIES - 8.5) * EVERY
    told = [line for line in others if json.loads(line)["input"] in ("instance", "parameters")]
    kept = [line for line in others if json.loads(line)["t"] >= begun]
    head = json.dumps({**json.loads(start), "t": begun, "continued": True})
    # the first call that ends began before, so no kernel can follow
    lost = a_file(tmp_path, head, *told, *kept[2:], name="lost.jsonl")
    seen = look(lost)
    assert {each.instance_id for each in (source.instance for source in seen.fleet)} == {
        source.instance.instance_id for source in unequal()
    }
    assert dict(seen.parameters["shop"]) == {"alpha": 0.0}
    found = retune(workflow(), None, lost, now=NOW)
    tuned = read_tuned(config_map(found))
    assert tuned.in_force is not None
    assert tuned.in_force.values["alpha"] > 0


def test_the_queries_of_other_workflows_say_nothing_of_ones_own_attainment(tmp_path: Path) -> None:
    log = a_log(tmp_path, [*rare(30), *rare(30, workflow="other")][:30])
    assert (timeliness(log, "shop").queries, timeliness(log, "other").queries) == (30, 0)
    span = timeliness(log, "shop").between(NOW - 5 * EVERY, NOW)
    assert span.queries == 5


def test_a_memory_that_cannot_be_read_is_none() -> None:
    for text in ("", "{", "[]", '{"changed_at": "yesterday"}'):
        assert read_memory({"data": {"memory.json": text}}) == Memory()
    assert nothing_to_learn(None, "why").data.keys() == {"outcome.json", "memory.json"}
