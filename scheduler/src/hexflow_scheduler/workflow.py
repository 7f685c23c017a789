"""A query's progress through its workflow: which stage is ready, and what time each may take.

A pure state machine beside the kernel. It knows names, instants and expected costs; not what a stage
does, nor who runs it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from hexflow_scheduler.budget import stage_budget
from hexflow_scheduler.errors import InvalidTemplate, InvalidTransition


@dataclass(frozen=True, slots=True)
class StageTemplate:
    """Name a stage and those that must be done before it."""

    name: str
    after: tuple[str, ...] = ()
    """Names of earlier stages; empty means the one just before it."""


@dataclass(frozen=True)
class WorkflowTemplate:
    """List the stages of a workflow. Raises InvalidTemplate unless each comes after its predecessors."""

    stages: tuple[StageTemplate, ...]

    def __post_init__(self) -> None:
        if not self.stages:
            raise InvalidTemplate("a workflow has at least one stage")
        names: list[str] = []
        for stage in self.stages:
            if not stage.name or stage.name in names:
                raise InvalidTemplate(
                    f"stages have names of their own; {stage.name!r} is empty or there twice"
                )
            for name in stage.after:
                if name not in names:
                    raise InvalidTemplate(
                        f"stage {stage.name!r} comes after {name!r}, which is not among the stages before it; "
                        f"those are: {', '.join(names) or 'none'}"
                    )
            names.append(stage.name)

    @cached_property
    def predecessors(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the stages that must be done before each stage starts."""
        found: dict[str, tuple[str, ...]] = {}
        before: tuple[str, ...] = ()
        for stage in self.stages:
            found[stage.name] = stage.after or before
            before = (stage.name,)
        return found

    @cached_property
    def successors(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the stages that wait for each stage."""
        return {
            stage.name: tuple(name for name, before in self.predecessors.items() if stage.name in before)
            for stage in self.stages
        }


class StageState(StrEnum):
    """Say how far a stage is."""

    PENDING = "Pending"
    RUNNING = "Running"
    DONE = "Done"
    SKIPPED = "Skipped"
    """Left out; the stages after it may start."""
    FAILED = "Failed"
    """Ends the query: nothing more becomes ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProgress:
    """Show a stage of a query."""

    name: str
    state: StageState
    started: float | None
    ended: float | None


class Progress:
    """Follow one query through its stages. Instants are seconds since the epoch."""

    def __init__(self, template: WorkflowTemplate, arrival: float, deadline: float | None = None) -> None:
        self.template = template
        self.arrival = arrival
        self.deadline = deadline
        self._stages = {
            stage.name: StageProgress(name=stage.name, state=StageState.PENDING, started=None, ended=None)
            for stage in template.stages
        }

    def __iter__(self) -> Iterator[StageProgress]:
        """Go through the stages in the order of the template."""
        return iter(self._stages.values())

    def stage(self, name: str) -> StageProgress:
        """Return how far a stage is; raises InvalidTransition if there is none of that name."""
        try:
            return self._stages[name]
        except KeyError:
            raise InvalidTransition(
                f"no stage is called {name!r}; there are: {', '.join(self._stages)}"
            ) from None

    @property
    def failed(self) -> bool:
        """Whether a stage failed."""
        return any(stage.state is StageState.FAILED for stage in self)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: every stage is done or skipped, or one failed and none runs."""
        if self.failed:
            return not any(stage.state is StageState.RUNNING for stage in self)
        return all(_passed(stage) for stage in self)

    def ready(self) -> tuple[str, ...]:
        """Return the stages that may start now, in the order of the template."""
        if self.failed:
            return ()
        return tuple(
            name
            for name, stage in self._stages.items()
            if stage.state is StageState.PENDING
            and all(_passed(self._stages[before]) for before in self.template.predecessors[name])
        )

    def start(self, now: float, name: str) -> None:
        """Start a stage that is ready."""
        if self.stage(name).state is not StageState.PENDING or name not in self.ready():
            raise InvalidTransition(f"stage {name!r} cannot start: it is {self._why_not(name)}")
        self._stages[name] = StageProgress(name=name, state=StageState.RUNNING, started=now, ended=None)

    def finish(self, now: float, name: str) -> None:
        """Note that a running stage is done."""
        self._close(now, name, StageState.DONE, allowed=(StageState.RUNNING,))

    def skip(self, now: float, name: str) -> None:
        """Leave out a stage that is pending, or what is left of one that runs."""
        self._close(now, name, StageState.SKIPPED, allowed=(StageState.PENDING, StageState.RUNNING))

    def fail(self, now: float, name: str) -> None:
        """Note that a running stage failed, and the query with it."""
        self._close(now, name, StageState.FAILED, allowed=(StageState.RUNNING,))

    def budget(self, now: float, name: str, costs: Mapping[str, float]) -> float | None:
        """Return the seconds a stage that is released now may take; None for a query without deadline.

        ``costs`` are expected seconds by stage, a missing one counting as zero. What must follow is the
        costliest chain of stages after it that are not done.
        """
        self.stage(name)
        if self.deadline is None:
            return None
        return stage_budget(self.deadline - now, costs.get(name, 0.0), self.later_cost(name, costs))

    def later_cost(self, name: str, costs: Mapping[str, float]) -> float:
        """Return the expected seconds of the costliest chain of unfinished stages that wait for a stage."""
        to_come: dict[str, float] = {}
        for stage in reversed(self.template.stages):
            to_come[stage.name] = max(
                (
                    (0.0 if _passed(self._stages[later]) else costs.get(later, 0.0)) + to_come[later]
                    for later in self.template.successors[stage.name]
                ),
                default=0.0,
            )
        return to_come[name]

    def _close(self, now: float, name: str, state: StageState, *, allowed: tuple[StageState, ...]) -> None:
        stage = self.stage(name)
        if stage.state not in allowed:
            raise InvalidTransition(f"stage {name!r} cannot become {state.value}: it is {stage.state.value}")
        self._stages[name] = StageProgress(name=name, state=state, started=stage.started, ended=now)

    def _why_not(self, name: str) -> str:
        stage = self._stages[name]
        if stage.state is not StageState.PENDING:
            return stage.state.value
        missing = [n for n in self.template.predecessors[name] if not _passed(self._stages[n])]
        return f"waiting for {', '.join(missing)}" if missing else "after a stage that failed"


def _passed(stage: StageProgress) -> bool:
    return stage.state in (StageState.DONE, StageState.SKIPPED)
