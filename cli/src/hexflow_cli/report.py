"""What a burst of questions came to: figures from recorded answers. Pure; knows no table and no router.

Percentiles are by nearest rank, so that each is a latency that some question really had. Times are emulated seconds.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hexflow_cli.enginetime import EngineTime
from hexflow_router.answer import Answer, CallReport, StageReport, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Hold one question of the burst with what became of it."""

    number: int
    tenant: str
    question: str
    arrival_seconds: float
    """When it was asked, from the start of the burst."""
    answer: Answer | None
    """None where the router gave none."""
    failure: str = ""
    """Why there is no answer."""
    right: bool = False
    """Whether the rows equal the checked answer."""

    @property
    def seconds(self) -> float:
        """Return how long it took; without an answer it took for ever."""
        return self.answer.seconds if self.answer and self.answer.status is Status.SUCCEEDED else math.inf

    @property
    def met(self) -> bool:
        """Return whether it was answered in time."""
        return bool(self.answer and self.answer.status is Status.SUCCEEDED and self.answer.deadline_met)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Sum up how long a group of questions took."""

    questions: int
    met: int
    p50_seconds: float
    p95_seconds: float
    longest_seconds: float

    @property
    def attainment(self) -> float:
        """Return the share that was answered in time."""
        return self.met / self.questions if self.questions else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """Sum up one stage over all questions; means are per question that reached it."""

    stage: str
    calls: int
    mean_seconds: float
    """From the start of the stage to its end."""
    mean_waited_seconds: float
    """Of these, on the longest chain of calls: before the call was sent to an instance."""
    mean_served_seconds: float
    """Of these, on the longest chain of calls: from being sent to its end."""
    mean_statement_seconds: float
    """Sum over the statements that were run; several may have run at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceTime:
    """Sum up what one instance did, as its calls report it."""

    instance: str
    gpu_type: str
    calls: int
    questions: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    waited_seconds: float
    """Sum over its calls: before they were sent."""
    served_seconds: float
    """Sum over its calls: from being sent to their end."""
    engine: EngineTime = field(default_factory=EngineTime)
    """The same seconds as the engine tells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Sum up one burst under one policy."""

    policy: str
    outcomes: tuple[Outcome, ...]
    overall: Latency
    by_tenant: dict[str, Latency]
    stages: tuple[StageTime, ...]
    instances: tuple[InstanceTime, ...]
    makespan_seconds: float
    """From the first question to the last answer."""

    @property
    def wrong(self) -> tuple[Outcome, ...]:
        """Return the questions whose rows differ from the checked answer, or that have none."""
        return tuple(outcome for outcome in self.outcomes if not outcome.right)


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def sum_up(
    policy: str, outcomes: Sequence[Outcome], engines: Mapping[str, EngineTime] | None = None
) -> Report:
    """Sum a burst up; `engines` has what the engines themselves say of their time."""
    tenants = dict.fromkeys(outcome.tenant for outcome in sorted(outcomes, key=lambda item: item.tenant))
    answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    ends = [outcome.arrival_seconds + outcome.answer.seconds for outcome in outcomes if outcome.answer]
    return Report(
        policy=policy,
        outcomes=tuple(outcomes),
        overall=_latency(outcomes),
        by_tenant={name: _latency([o for o in outcomes if o.tenant == name]) for name in tenants},
        stages=_stages(answers),
        instances=_instances(answers, engines or {}),
        makespan_seconds=max(ends, default=0.0),
    )


def _latency(outcomes: Sequence[Outcome]) -> Latency:
    times = [outcome.seconds for outcome in outcomes]
    return Latency(
        questions=len(outcomes),
        met=sum(outcome.met for outcome in outcomes),
        p50_seconds=percentile(times, 0.50),
        p95_seconds=percentile(times, 0.95),
        longest_seconds=max(times, default=0.0),
    )


def _stages(answers: Sequence[Answer]) -> tuple[StageTime, ...]:
    grouped: dict[str, list[StageReport]] = defaultdict(list)
    for answer in answers:
        for stage in answer.stages:
            if stage.seconds is not None:
                grouped[stage.name].append(stage)
    return tuple(_stage(name, stages) for name, stages in grouped.items())


def _stage(name: str, stages: Sequence[StageReport]) -> StageTime:
    chains = [_longest_chain(stage.calls) for stage in stages]
    count = len(stages)
    waited = sum(_waited(call) for chain in chains for call in chain)
    served = sum(_served(call) for chain in chains for call in chain)
    return StageTime(
        stage=name,
        calls=sum(len(stage.calls) for stage in stages),
        mean_seconds=sum(stage.seconds or 0.0 for stage in stages) / count,
        mean_waited_seconds=waited / count,
        mean_served_seconds=served / count,
        mean_statement_seconds=sum(stage.statement_seconds for stage in stages) / count,
    )


def _longest_chain(calls: Sequence[CallReport]) -> list[CallReport]:
    """Return the calls of the sibling that took longest: calls of one sibling follow each other."""
    chains: dict[int, list[CallReport]] = defaultdict(list)
    for call in calls:
        chains[call.sibling].append(call)
    return max(
        chains.values(), key=lambda chain: sum(_waited(call) + _served(call) for call in chain), default=[]
    )


@dataclass(slots=True)
class _Tally:
    gpu_type: str = ""
    questions: set[str] = field(default_factory=set)
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    waited: float = 0.0
    served: float = 0.0


def _instances(answers: Sequence[Answer], engines: Mapping[str, EngineTime]) -> tuple[InstanceTime, ...]:
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    for answer in answers:
        for call in (call for stage in answer.stages for call in stage.calls if call.instance):
            tally = tallies[str(call.instance)]
            tally.gpu_type = call.gpu_type or tally.gpu_type
            tally.questions.add(answer.id)
            tally.calls += 1
            tally.prompt += call.prompt_tokens or 0
            tally.cached += call.cached_tokens or 0
            tally.output += call.output_tokens or 0
            tally.waited += _waited(call)
            tally.served += _served(call)
    return tuple(
        InstanceTime(
            instance=name,
            gpu_type=tally.gpu_type,
            calls=tally.calls,
            questions=len(tally.questions),
            prompt_tokens=tally.prompt,
            cached_tokens=tally.cached,
            output_tokens=tally.output,
            waited_seconds=tally.waited,
            served_seconds=tally.served,
            engine=engines.get(name, EngineTime()),
        )
        for name, tally in sorted(tallies.items())
    )


def _waited(call: CallReport) -> float:
    """Return the seconds before it was sent; all of them, where it never was."""
    return (call.queued_seconds if call.instance else call.seconds) or 0.0


def _served(call: CallReport) -> float:
    """Return the seconds from its sending to its end."""
    return (call.seconds if call.instance else None) or 0.0
