"""A query's progress through its workflow: which stage is ready, and what time each may take.

A pure state machine beside the kernel. It knows names, instants and expected costs; not what a stage
does, nor who runs it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hexflow_scheduler.budget import stage_budget
from hexflow_scheduler.errors import InvalidTemplate, InvalidTransition


@dataclass(frozen=True, slots=True)
class StageTemplate:
    """Name a stage and those that must be done before it."""

    name: str
    after: tuple[str, ...] = ()
    """Names of earlier stages; empty means the one just before it."""


@dataclass(frozen=True, slots=True)
class WorkflowTemplate:
    """List the stages of a workflow. Raises InvalidTemplate unless each comes after its predecessors."""

    stages: tuple[StageTemplate, ...]
    predecessors: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    """Names of the stages that must be done before each stage starts."""
    successors: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    """Names of the stages that wait for each stage."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise InvalidTemplate("a workflow has at least one stage")
        predecessors: dict[str, tuple[str, ...]] = {}
        before: tuple[str, ...] = ()
        for stage in self.stages:
            if not stage.name or stage.name in predecessors:
                raise InvalidTemplate(
                    f"stages have names of their own; {stage.name!r} is empty or there twice"
                )
            for name in stage.after:
                if name not in predecessors:
                    raise InvalidTemplate(
                        f"stage {stage.name!r} comes after {name!r}, which is not among the stages before it; "
                        f"those are: {', '.join(predecessors) or 'none'}"
                    )
            predecessors[stage.name] = stage.after or before
            before = (stage.name,)
        object.__setattr__(self, "predecessors", predecessors)
        object.__setattr__(
            self,
            "successors",
            {name: tuple(other for other, of in predecessors.items() if name in of) for name in predecessors},
        )


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

    __slots__ = ("_running", "_stages", "_waits_for", "arrival", "deadline", "failed", "template")

    def __init__(self, template: WorkflowTemplate, arrival: float, deadline: float | None = None) -> None:
        self.template = template
        self.arrival = arrival
        self.deadline = deadline
        self.failed = False
        """Whether a stage failed."""
        self._stages: dict[str, _Stage] = {stage.name: _Stage() for stage in template.stages}
        self._running = 0
        self._waits_for: dict[str, int] = {
            name: len(before) for name, before in template.predecessors.items()
        }
        """Of each stage that is pending, how many it waits for."""

    def __iter__(self) -> Iterator[StageProgress]:
        """Go through the stages in the order of the template."""
        return iter([self.stage(name) for name in self._stages])

    def stage(self, name: str) -> StageProgress:
        """Return how far a stage is; raises InvalidTransition if there is none of that name."""
        stage = self._stage(name)
        return StageProgress(name=name, state=stage.state, started=stage.started, ended=stage.ended)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: every stage is done or skipped, or one failed and none runs."""
        return not self._running and (self.failed or not self._waits_for)

    def ready(self) -> tuple[str, ...]:
        """Return the stages that may start now, in the order of the template."""
        if self.failed:
            return ()
        return tuple([name for name, missing in self._waits_for.items() if not missing])

    def unfinished(self) -> list[str]:
        """Return the stages that are neither done nor skipped, in the order of the template."""
        return [name for name, stage in self._stages.items() if not stage.passed]

    def start(self, now: float, name: str) -> None:
        """Start a stage that is ready."""
        stage = self._stage(name)
        if self.failed or self._waits_for.get(name, 1):
            raise InvalidTransition(f"stage {name!r} cannot start: it is {self._why_not(name, stage)}")
        del self._waits_for[name]
        self._running += 1
        stage.state, stage.started = StageState.RUNNING, now

    def finish(self, now: float, name: str) -> None:
        """Note that a running stage is done."""
        self._close(now, name, StageState.DONE)

    def skip(self, now: float, name: str) -> None:
        """Leave out a stage that is pending, or what is left of one that runs."""
        self._close(now, name, StageState.SKIPPED)

    def fail(self, now: float, name: str) -> None:
        """Note that a running stage failed, and the query with it."""
        self._close(now, name, StageState.FAILED)
        self.failed = True

    def budget(self, now: float, name: str, costs: Mapping[str, float]) -> float | None:
        """Return the seconds a stage that is released now may take; None for a query without deadline.

        ``costs`` are expected seconds by stage, a missing one counting as zero. What must follow is the
        costliest chain of stages after it that are not done.
        """
        self._stage(name)
        if self.deadline is None:
            return None
        return stage_budget(self.deadline - now, costs.get(name, 0.0), self.later_cost(name, costs))

    def later_cost(self, name: str, costs: Mapping[str, float]) -> float:
        """Return the expected seconds of the costliest chain of unfinished stages that wait for a stage."""
        to_come: dict[str, float] = {}
        successors = self.template.successors
        for stage in reversed(self.template.stages):
            most = 0.0
            for later in successors[stage.name]:
                cost = to_come[later]
                if not self._stages[later].passed:
                    cost += costs.get(later, 0.0)
                most = max(most, cost)
            to_come[stage.name] = most
            if stage.name == name:
                break
        return to_come[name]

    def _close(self, now: float, name: str, state: StageState) -> None:
        stage = self._stage(name)
        if stage.state is StageState.RUNNING:
            self._running -= 1
        elif stage.state is StageState.PENDING and state is StageState.SKIPPED:
            del self._waits_for[name]
        else:
            raise InvalidTransition(f"stage {name!r} cannot become {state.value}: it is {stage.state.value}")
        stage.state, stage.ended = state, now
        if state is StageState.FAILED:
            return
        stage.passed = True
        for later in self.template.successors[name]:
            if later in self._waits_for:
                self._waits_for[later] -= 1

    def _stage(self, name: str) -> "_Stage":
        stage = self._stages.get(name)
        if stage is None:
            raise InvalidTransition(f"no stage is called {name!r}; there are: {', '.join(self._stages)}")
        return stage

    def _why_not(self, name: str, stage: "_Stage") -> str:
        if stage.state is not StageState.PENDING:
            return stage.state.value
        missing = [n for n in self.template.predecessors[name] if not self._stages[n].passed]
        return f"waiting for {', '.join(missing)}" if missing else "after a stage that failed"


class _Stage:
    """Keep how far a stage is."""

    __slots__ = ("ended", "passed", "started", "state")

    def __init__(self) -> None:
        self.state = StageState.PENDING
        self.started: float | None = None
        self.ended: float | None = None
        self.passed = False
        """Whether it is done or skipped."""
