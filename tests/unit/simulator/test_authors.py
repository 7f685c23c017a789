"""The authors' engine model against times reckoned by hand."""

import pytest

from hexflow_scheduler import Policy
from hexflow_simulator import EngineOptions, EngineOrder, RequestTooLargeError, simulate
from hexflow_simulator.authors import SPEEDS, AuthorsEngine, AuthorsSpeed, authors_engine, authors_fleet
from support.calls import MODEL
from support.engine_model import a_request, by_name, run_out
from support.simulated import a_call, a_query, a_stage, latency

ROUND = AuthorsSpeed(decode=0.05, prefill={"candidate": 0.001}, other_prefill=0.002, kv_blocks=100)


def an_engine(order: EngineOrder = EngineOrder.FCFS, speed: AuthorsSpeed = ROUND) -> AuthorsEngine:
    return AuthorsEngine(speed, EngineOptions(order=order, overhead_seconds=0.0))


def test_a_call_alone_takes_its_prefill_by_its_stage_and_the_same_time_for_each_token() -> None:
    engine = an_engine()
    engine.submit(5.0, a_request("draft", prompt=100, output=11, stage="candidate"))
    (draft,) = run_out(engine)
    assert draft.started == 5.0
    assert draft.first_token == pytest.approx(5.1)
    assert draft.finished == pytest.approx(5.1 + 10 * 0.05)
    engine.submit(9.0, a_request("test", prompt=100, output=11, stage="tester-2"))
    (test,) = run_out(engine)
    assert test.first_token == pytest.approx(9.2)


def test_prefills_go_one_after_the_other_and_all_decoding_waits_for_them() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request("a", prompt=100, output=11, stage="candidate"))
    engine.submit(0.0, a_request("b", prompt=200, output=3, stage="candidate"))
    finished = by_name(run_out(engine))
    assert finished["a"].first_token == pytest.approx(0.1)
    assert finished["b"].first_token == pytest.approx(0.3)
    assert finished["b"].finished == pytest.approx(0.3 + 2 * 0.05)
    assert finished["a"].finished == pytest.approx(0.3 + 10 * 0.05)


def test_a_newcomer_is_prefilled_at_the_next_step() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request("a", prompt=100, output=11, stage="candidate"))
    engine.submit(0.22, a_request("b", prompt=100, output=1, stage="candidate"))
    finished = by_name(run_out(engine))
    assert finished["b"].started == pytest.approx(0.25)
    assert finished["b"].finished == pytest.approx(0.35)
    assert finished["a"].finished == pytest.approx(0.6 + 0.1)


def test_blocks_are_counted_for_prompts_alone() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request("a", prompt=1600, output=5000, stage="candidate"))
    engine.submit(0.0, a_request("b", prompt=1, output=1, stage="candidate"))
    finished = by_name(run_out(engine))
    assert finished["b"].started == pytest.approx(finished["a"].finished)
    with pytest.raises(RequestTooLargeError):
        engine.submit(999.0, a_request("c", prompt=1601))


@pytest.mark.parametrize(("order", "expected"), [(EngineOrder.FCFS, "abcd"), (EngineOrder.PRIORITY, "acdb")])
def test_what_waits_goes_by_the_engines_order(order: EngineOrder, expected: str) -> None:
    engine = an_engine(order)
    for name, priority in (("a", 9), ("b", 5), ("c", -1), ("d", 0)):
        engine.submit(0.0, a_request(name, prompt=1600, priority=priority))
        engine.advance(0.001)
    assert "".join(each.request_id for each in run_out(engine)) == expected


def test_a_request_that_is_withdrawn_frees_its_blocks_and_never_finishes() -> None:
    engine = an_engine()
    engine.submit(0.0, a_request("running", prompt=1600, output=100))
    engine.submit(0.0, a_request("waiting", prompt=100, output=3))
    engine.submit(0.0, a_request("last", prompt=100, output=3))
    engine.advance(4.0)
    assert engine.cancel(4.0, "waiting")
    assert engine.cancel(4.0, "running")
    assert not engine.cancel(4.0, "running")
    (last,) = run_out(engine)
    assert last.request_id == "last"
    assert last.started == pytest.approx(4.0)
    assert engine.free_blocks == 100
    assert engine.next_event() is None


def test_a_fleet_of_theirs_is_simulated_with_their_engines() -> None:
    fleet = authors_fleet(["A100", "A6000"], MODEL)
    query = a_query("q", a_stage("candidate", a_call(1000, 101), a_call(1000, 101)))
    result = simulate([query], fleet, Policy.named("RoundRobin"), engine=authors_engine)
    a6000 = SPEEDS["A6000"]
    assert latency(result) == pytest.approx(a6000.prefill_seconds("candidate", 1000) + 100 * a6000.decode)
    assert {source.instance.gpu_type: source.instance.profile.t0 for source in fleet} == {
        "A100": 0.035,
        "A6000": 0.058,
    }
