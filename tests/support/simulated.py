"""Builders of what a simulation is given, with times that can be reckoned by hand."""

from collections.abc import Sequence
from random import Random
from typing import Any

from hexflow_scheduler import Instance, Profile
from hexflow_simulator import (
    EngineOptions,
    SimulatedCall,
    SimulatedInstance,
    SimulatedQuery,
    SimulatedStage,
    SimulationResult,
)
from support.calls import MODEL
from support.engine_model import ROUND, blocks


def instances(count: int = 2, **changes: Any) -> list[SimulatedInstance]:
    """Return instances i0, i1, … of profile ROUND, without the fixed cost of a call."""
    return [an_instance(f"i{number}", **changes) for number in range(count)]


def an_instance(instance_id: str = "i0", **changes: Any) -> SimulatedInstance:
    """Return an instance; ``profile`` is what is believed, ``true`` what it is where that differs."""
    told: dict[str, Any] = {
        "pool": "pool",
        "gpu_type": "A100-80GB",
        "models": frozenset({MODEL}),
        "profile": ROUND,
        "takes_priority": True,
    }
    true: Profile | None = changes.pop("true", None)
    slowdown: float = changes.pop("slowdown", 1.0)
    options = EngineOptions(**{"overhead_seconds": 0.0, **changes.pop("options", {})})
    return SimulatedInstance(
        instance=Instance(**{**told, "instance_id": instance_id, **changes}),
        profile=true,
        options=options,
        slowdown=slowdown,
    )


def a_call(prompt: int = 100, output: int = 10, *then: SimulatedCall, **fields: Any) -> SimulatedCall:
    """Return a call, and what follows it in its chain."""
    return SimulatedCall(prompt_tokens=prompt, output_tokens=output, then=then, **fields)


def a_stage(name: str, *calls: SimulatedCall, after: Sequence[str] = ()) -> SimulatedStage:
    """Return a stage."""
    return SimulatedStage(name=name, calls=calls, after=tuple(after))


def a_query(
    query_id: str = "q", *stages: SimulatedStage, arrival: float = 0.0, **fields: Any
) -> SimulatedQuery:
    """Return a query; of one call where no stages are given."""
    return SimulatedQuery(
        query_id=query_id,
        arrival=arrival,
        model=MODEL,
        stages=stages or (a_stage("only", a_call()),),
        **fields,
    )


def random_queries(count: int, *, seed: int = 0, rate: float = 1.0, **fields: Any) -> list[SimulatedQuery]:
    """Return queries with siblings, chains, skipped stages and shared prefixes, in order of arrival."""
    random = Random(seed)
    now, made = 0.0, []
    for number in range(count):
        now += random.expovariate(rate)
        prefix = blocks(("template", 160), (f"schema-{random.randrange(4)}", random.randrange(200, 300)))

        def call(*then: SimulatedCall, shared: Any = prefix) -> SimulatedCall:
            own = random.randrange(1, 400)
            tokens = own + sum(block.tokens for block in shared)
            return a_call(tokens, random.randrange(1, 120), *then, prefix=shared)

        stages = (
            a_stage("link", call()),
            a_stage("draft", *(call() for _ in range(random.randrange(1, 5)))),
            a_stage("fix", *(call(call()) for _ in range(random.randrange(3)))),
            a_stage("judge", call(shared=())),
        )
        made.append(
            a_query(
                f"q{number}", *stages, arrival=now, **{"slo_seconds": 20.0, "base_seconds": 4.0, **fields}
            )
        )
    return made


def latency(result: SimulationResult, query_id: str = "q") -> float:
    """Return the seconds of a query that was answered."""
    (found,) = [query for query in result.queries if query.query_id == query_id]
    assert found.latency is not None, found
    return found.latency
