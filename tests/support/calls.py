"""Builders of what the kernel is told, with values that make hand computation easy."""

from typing import Any

from hexflow_scheduler import Call, Instance, InstanceState, Profile, Usage
from hexflow_scheduler.active import ActiveCall, OpenQuery

MODEL = "coder"

FAST = Profile(t0=0.02, t1=0.0, t2=0.0, c1=0.001, c2=0.0, kv_tokens=100_000, slots=2)
"""1 ms a prompt token, 20 ms an output token, whatever else runs: 1,000 + 100 tokens take 3 s."""
SLOW = Profile(t0=0.04, t1=0.0, t2=0.0, c1=0.002, c2=0.0, kv_tokens=100_000, slots=2)
"""Half as fast: 1,000 + 100 tokens take 6 s."""


def a_call(call_id: str = "c", **changes: Any) -> Call:
    """Return a plain call of 1,000 prompt tokens and at most 100 of output."""
    values: dict[str, Any] = {
        "call_id": call_id,
        "query_id": call_id,
        "model": MODEL,
        "prompt_tokens": 1000,
        "max_tokens": 100,
        "query_arrival": 0.0,
    }
    return Call(**{**values, **changes})


def calls(count: int, **changes: Any) -> list[Call]:
    """Return calls c0, c1, … that are alike."""
    return [a_call(f"c{number}", **changes) for number in range(count)]


def an_active_call(call: Call, **changes: Any) -> ActiveCall:
    """Return a call as the kernel keeps it, under a query of its own."""
    query = OpenQuery(query_id=call.query_id, workflow=call.workflow, arrival=call.query_arrival)
    values: dict[str, Any] = {"query": query, "order": 0, "released": 0.0, "output_tokens": 1.0}
    active = ActiveCall(call=call, **{**values, **changes})
    active.query.calls[call.call_id] = active
    return active


def an_instance(instance_id: str = "a", **changes: Any) -> Instance:
    """Return a ready instance of profile FAST."""
    values: dict[str, Any] = {
        "instance_id": instance_id,
        "pool": "pool",
        "gpu_type": "A100-80GB",
        "models": frozenset({MODEL}),
        "profile": FAST,
    }
    return Instance(**{**values, **changes})


def gone(instance_id: str = "a", **changes: Any) -> Instance:
    """Return an instance that does not exist any more."""
    return an_instance(instance_id, state=InstanceState.GONE, **changes)


def usage(output_tokens: int = 100, **changes: Any) -> Usage:
    """Return the usage of a call of ``a_call``'s prompt."""
    return Usage(**{"prompt_tokens": 1000, "output_tokens": output_tokens, **changes})
