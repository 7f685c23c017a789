"""What a query's SLO is measured by: the time its calls take on an idle fleet.

Two bases. The study's: the mean warm critical path over the instances, of queries as they come. The authors' of
HexGen-Flow: the mean cost of fifteen steps in a row. Seconds everywhere; pure functions of profiles.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean

from hexflow_scheduler import Profile
from hexflow_simulator import chess
from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.mix import Mix
from hexflow_simulator.query import SimulatedCall, SimulatedStage
from hexflow_simulator.shape import calls_of
from hexflow_simulator.workload import Workload

OVERHEAD_SECONDS = 0.015
"""Fixed cost of a call (HTTP, tokenising), as in the engine model."""
_SAMPLE = 1000
"""Queries over which means are taken: they are known within 2 %."""


def critical_path(
    stages: Sequence[SimulatedStage], profile: Profile, *, warm: bool = True, batch: int = 1
) -> float:
    """Return the seconds of a query that has an instance to itself: its slowest chain in each stage, in a row.

    ``warm`` means that templates and schemas are in the prefix cache. What a query's own calls share is
    computed once by the first of a chain. Stages count as a row, which they are unless ``after`` says otherwise.
    """
    return sum(_slowest(stage.calls, profile, warm=warm, batch=batch, known=0) for stage in stages)


def _slowest(
    calls: Iterable[SimulatedCall], profile: Profile, *, warm: bool, batch: int, known: int
) -> float:
    slowest = 0.0
    for call in calls:
        whole = sum(block.tokens for block in call.prefix)
        head = sum(block.tokens for block in call.prefix[:2]) if warm else 0
        seconds = (
            OVERHEAD_SECONDS
            + profile.prefill_seconds(call.prompt_tokens, cached_tokens=max(head, known))
            + profile.decode_seconds(call.prompt_tokens, call.output_tokens, batch=batch)
        )
        later = _slowest(call.then, profile, warm=warm, batch=batch, known=whole)
        slowest = max(slowest, seconds + later)
    return slowest


def warm_base(mix: Mix, profiles: Sequence[Profile]) -> float:
    """Return the mean warm critical path of a mix: over its queries, over the instances of a fleet.

    With a factor of 5 this is the study's SLO.
    """
    sample = _sample(mix)
    kinds = {profile: profiles.count(profile) for profile in profiles}
    return sum(
        number * fmean(critical_path(stages, profile) for stages in sample)
        for profile, number in kinds.items()
    ) / len(profiles)


def stage_seconds(mix: Mix, profiles: Sequence[Profile]) -> dict[str, float]:
    """Return the mean seconds of a call by stage: over the calls of a mix, over the instances, alone and cold."""
    calls: dict[str, list[SimulatedCall]] = {}
    for stages in _sample(mix):
        for stage, call in calls_of(stages):
            calls.setdefault(stage, []).append(call)
    return {
        stage: fmean(
            profile.prefill_seconds(call.prompt_tokens)
            + profile.decode_seconds(call.prompt_tokens, call.output_tokens)
            for call in each
            for profile in profiles
        )
        for stage, each in calls.items()
    }


def authors_base(seconds: Mapping[str, float]) -> float:
    """Return the authors' SLO base: the sum over their template of fifteen steps of each step's mean seconds.

    ``seconds`` is by stage and already the mean over the instances: of ``stage_seconds``, or of the authors' tables.
    """
    return sum(seconds[step] for step in chess.STEPS)


@lru_cache(maxsize=8)
def _sample(mix: Mix) -> tuple[tuple[SimulatedStage, ...], ...]:
    """Return the stages of some queries. Where schemas are cached, it matters little how many databases there are."""
    workload = Workload(mix=mix, arrivals=Poisson(1.0), model="")
    return tuple(query.stages for query in workload.queries("slo", count=_SAMPLE))
