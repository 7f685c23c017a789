"""Builders for the engine model."""

from collections.abc import Sequence
from typing import Any

from hexflow_scheduler import PrefixBlock, Profile
from hexflow_simulator import Engine, EngineModel, EngineOptions, EngineRequest, Finished

ROUND = Profile(t0=0.02, t1=0.001, t2=0.00001, c1=0.0001, c2=0.0, kv_tokens=16_000, slots=8)
"""A profile with which times can be reckoned by hand."""


def an_engine(*, profile: dict[str, Any] | None = None, **options: Any) -> Engine:
    """Return an engine without the fixed cost of a call, unless told otherwise."""
    values = {name: getattr(ROUND, name) for name in ROUND.__slots__}
    usual: dict[str, Any] = {"overhead_seconds": 0.0}
    return Engine(Profile(**{**values, **(profile or {})}), EngineOptions(**{**usual, **options}))


def a_request(name: str = "a", /, *, prompt: int = 100, output: int = 10, **fields: Any) -> EngineRequest:
    """Return a request."""
    return EngineRequest(request_id=name, prompt_tokens=prompt, output_tokens=output, **fields)


def blocks(*named: tuple[str, int]) -> tuple[PrefixBlock, ...]:
    """Return a prefix chain: each key stands for all that comes before it, too."""
    chain, key = [], ""
    for name, tokens in named:
        key = f"{key}/{name}"
        chain.append(PrefixBlock(key=key, tokens=tokens))
    return tuple(chain)


def run_out(engine: EngineModel, *, limit: int = 1_000_000) -> list[Finished]:
    """Let an engine run from event to event until nothing is left."""
    finished: list[Finished] = []
    for _ in range(limit):
        at = engine.next_event()
        if at is None:
            return finished
        finished += engine.advance(at)
    raise AssertionError("the engine never came to an end")


def by_name(finished: Sequence[Finished]) -> dict[str, Finished]:
    """Return what finished by its request's id."""
    return {each.request_id: each for each in finished}
