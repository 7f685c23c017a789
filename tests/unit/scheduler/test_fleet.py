from hexflow_scheduler import InstanceState, serves
from hexflow_scheduler.estimate import Estimates
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.ordering.fcfs import FCFS
from support.calls import MODEL, a_call, an_active_call, an_instance


def test_an_instance_serves_a_call_of_its_model_and_pool_that_fits_whatever_its_state() -> None:
    instance = an_instance(state=InstanceState.UNREADY, max_context=2000)
    assert serves(instance, a_call(model=MODEL))
    assert serves(instance, a_call(pools=frozenset({"pool"}), prompt_tokens=1999))
    assert not serves(instance, a_call(pools=frozenset({"elsewhere"})))
    assert not serves(instance, a_call(prompt_tokens=2000))
    assert not serves(instance, a_call(model="chat"))


def test_the_live_calls_of_a_query_are_found_by_its_id() -> None:
    fleet = Fleet(Estimates(), FCFS())
    calls = [a_call(f"c{number}", query_id="q") for number in range(2)]
    both = [an_active_call(call, query=fleet.query(0.0, call)) for call in calls]
    assert list(fleet.calls_of("q").values()) == both
    fleet.dismiss(both[0])
    assert list(fleet.calls_of("q")) == ["c1"]
    fleet.dismiss(both[1])
    assert not fleet.calls_of("q")
