from dataclasses import replace
from typing import Any

import pytest

from hexflow_router.auth import Tenant
from hexflow_router.body import read_head
from hexflow_router.catalogue import WorkflowTerms
from hexflow_router.description import UNSTATED_OUTPUT, Offer, describe
from hexflow_router.hints import Hints
from hexflow_scheduler import Call

NOW = 1000.0
OPEN = Tenant()
SUPPORT = Tenant(name="support", workflow="shop", keyed=True)
GOLD = replace(SUPPORT, name="analytics", slo_class="gold")
TERMS = WorkflowTerms(
    name="shop", pools=frozenset({"a100"}), deadline_seconds=60, class_deadlines={"gold": 20}
)
OFFER = Offer(pools=frozenset({"a100", "l40s"}), max_context=8192)


def a_call(body: bytes = b'{"messages":[]}', **given: Any) -> Call:
    usual: dict[str, Any] = {
        "call_id": "c1",
        "model": "tiny",
        "head": read_head(body),
        "hints": Hints(),
        "tenant": OPEN,
        "terms": None,
        "offer": OFFER,
        "now": NOW,
        "arrival": NOW,
    }
    return describe(**{**usual, **given})


def test_a_plain_call_is_a_query_of_one_without_a_deadline() -> None:
    call = a_call()
    assert (call.query_id, call.deadline, call.budget_seconds) == ("c1", None, None)
    assert (call.workflow, call.stage, call.tenant) == ("", "", "")
    assert call.pools == frozenset({"a100", "l40s"})
    assert call.max_tokens == UNSTATED_OUTPUT


def test_a_tenant_s_share_goes_along() -> None:
    assert a_call(tenant=replace(SUPPORT, weight=4.0)).tenant_weight == 4.0
    assert a_call().tenant_weight == 1.0


def test_what_does_not_fit_by_our_count_is_left_to_the_engine_to_refuse() -> None:
    call = a_call(
        b'{"max_tokens": 100000, "messages":[{"role":"user","content":"' + b"word " * 40_000 + b'"}]}'
    )
    assert call.prompt_tokens + call.max_tokens <= 8192
    assert call.max_tokens >= 1


def test_the_prompt_counts_with_its_tools() -> None:
    messages = b'"messages":[{"role":"user","content":"hi"}]'
    tools = b'"tools":[{"type":"function","function":{"description":"' + b"long " * 200 + b'"}}]'
    plain, with_tools = a_call(b"{" + messages + b"}"), a_call(b"{" + messages + b"," + tools + b"}")
    assert with_tools.prompt_tokens > plain.prompt_tokens + 100


def test_a_known_workflow_brings_its_pools_and_its_deadline() -> None:
    call = a_call(hints=Hints(workflow="shop", query="q"), terms=TERMS, arrival=NOW - 10)
    assert call.pools == frozenset({"a100"})
    assert (call.query_id, call.query_arrival, call.deadline, call.budget_seconds) == (
        "q",
        NOW - 10,
        NOW + 50,
        50,
    )


@pytest.mark.parametrize(
    ("tenant", "hints", "seconds_left"),
    [
        (GOLD, Hints(), 20),
        (SUPPORT, Hints(), 60),
        (SUPPORT, Hints(deadline_seconds=5), 60),
        (SUPPORT, Hints(deadline_seconds=90), 90),
        (SUPPORT, Hints(objective="gold"), 60),
        (SUPPORT, Hints(first_token_seconds=0.1), 60),
        (OPEN, Hints(deadline_seconds=5), 5),
        (OPEN, Hints(objective="gold"), 20),
        (OPEN, Hints(deadline_seconds=-5), -5),
    ],
)
def test_a_tenant_may_lower_its_urgency_and_never_raise_it(
    tenant: Tenant, hints: Hints, seconds_left: float
) -> None:
    call = a_call(tenant=tenant, hints=hints, terms=TERMS)
    assert call.deadline == NOW + seconds_left
    assert call.budget_seconds == max(0.0, seconds_left)


def test_who_wants_its_first_token_soon_has_that_as_its_budget() -> None:
    assert a_call(hints=Hints(first_token_seconds=0.3)).budget_seconds == 0.3
    assert a_call(hints=Hints(first_token_seconds=9.0, deadline_seconds=4.0)).budget_seconds == 4.0
