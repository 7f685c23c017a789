"""The pipeline: takes a query through its stages, each with its share of the time left.

What a stage does is hexflow_sql's, which stage is ready and what time it gets is hexflow_scheduler's; here
the two meet. Stages that are ready together run in the order of the workflow, since one draft goes through
all of them. Every way out of here ends the query.
"""

import asyncio
import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from hexflow_api import Stage
from hexflow_router.answer import CandidateReport, Status
from hexflow_router.configuration import StageSetup
from hexflow_router.databases import Databases
from hexflow_router.metrics import Metrics
from hexflow_router.model import CallRecord, Release, StageCalls, StageModel
from hexflow_router.query import Query, StageState, call_report
from hexflow_scheduler import Progress, StageTemplate, TimeScale, WorkflowTemplate, estimate_tokens
from hexflow_sql.completion import CompletionError
from hexflow_sql.database import Database
from hexflow_sql.draft import Draft, settle
from hexflow_sql.errors import DatabaseUnavailable, SqlError
from hexflow_sql.limits import Limits
from hexflow_sql.question import Question as SqlQuestion
from hexflow_sql.result import Result
from hexflow_sql.schema import Schema
from hexflow_sql.stage import Event, StageSettings, build_stage
from hexflow_sql.stage.events import CandidateExtracted, PartSkipped, StatementTried
from hexflow_sql.values import ValueIndex

LEAST_STATEMENT_SECONDS = 2.0
"""Real seconds that a statement is granted whatever the time scale, if its limit is not lower."""

REFUSALS = frozenset({"Forbidden", "Function", "Multiple", "NotAQuery"})
"""Reasons by which the guard refuses what is no plain query; a table that does not exist is a mere mistake."""

StageSeconds = Callable[[str, str, str, frozenset[str] | None], float]
"""Expected seconds of (workflow, stage, model, pools): ``Kernel.stage_seconds``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Run queries; one serves all of them."""

    release: Release
    databases: Databases
    metrics: Metrics
    clock: Callable[[], float]
    scale: TimeScale
    stage_seconds: StageSeconds
    query_ended: Callable[[str, bool], None]
    """Is told each query's id at its end, and whether it was answered: ``Driver.query_ended``."""
    new_id: Callable[[], str]
    limits: Limits

    async def run(self, query: Query) -> None:
        """Take a query to its end, whatever it is; raises only for a defect or when it is cancelled."""
        answered = False
        try:
            async with self.databases.lend(query.workflow.name, query.database) as database:
                await self._answer(query, _Timed(database, self.scale))
        except DatabaseUnavailable as problem:
            query.end(Status.FAILED, reason="DatabaseUnavailable", message=problem.message)
        except (SqlError, CompletionError) as problem:
            query.end(Status.FAILED, reason=problem.reason, message=str(problem))
        else:
            answered = True
            query.end(Status.SUCCEEDED)
        finally:
            self.query_ended(query.query_id, answered)

    async def _answer(self, query: Query, database: Database) -> None:
        reference = query.question.reference_time or datetime.fromtimestamp(query.created_wall, UTC)
        draft = Draft(
            question=SqlQuestion(
                text=query.question.question, evidence=query.question.evidence or "", reference_time=reference
            ),
            schema=await database.schema(),
        )
        setups = {setup.stage.name: setup for setup in query.workflow.stages}
        progress = Progress(
            WorkflowTemplate(
                tuple(StageTemplate(name, tuple(setup.stage.after)) for name, setup in setups.items())
            ),
            query.arrival,
            query.deadline,
        )
        query.stages = [StageState(name=name, kind=setup.stage.kind) for name, setup in setups.items()]
        states = {state.name: state for state in query.stages}
        while ready := progress.ready():
            name = ready[0]
            draft = await self._stage(query, setups[name], states[name], progress, draft, database)
            query.draft = draft
        query.chosen = settle(draft)

    async def _stage(
        self,
        query: Query,
        setup: StageSetup,
        state: StageState,
        progress: Progress,
        draft: Draft,
        database: Database,
    ) -> Draft:
        settings, cut = self._settings(query, setup)
        stage = build_stage(setup.stage.kind, settings)
        model = self._model(query, setup, state, progress)
        progress.start(self.clock(), state.name)
        state.status, state.started_at, state.budget_seconds = "Running", self.clock(), model.budget()
        query.events.publish(
            "stage.started",
            {
                "stage": state.name,
                "kind": state.kind,
                "budgetSeconds": state.budget_seconds,
                "startedSeconds": state.started_at - query.arrival,
            },
        )
        if cut is not None:
            self._observe(query, state, cut)
        try:
            draft = await stage.run(
                draft,
                model=model,
                database=database,
                time_left=_time_left(query, setup.stage),
                observe=lambda event: self._observe(query, state, event),
                sleep=lambda seconds: asyncio.sleep(self.scale.real_seconds(seconds)),
            )
        except BaseException:
            progress.fail(self.clock(), state.name)
            self._close(query, state, "Failed")
            raise
        finally:
            model.withdraw()
        progress.finish(self.clock(), state.name)
        self._close(query, state, "Done")
        return draft

    def _close(self, query: Query, state: StageState, status: str) -> None:
        state.status, state.ended_at = status, self.clock()
        seconds = state.ended_at - (state.started_at or state.ended_at)
        self.metrics.observe("hexflow_stage_seconds", seconds, query.workflow.name, state.name)
        query.events.publish(
            "stage.finished",
            {
                "stage": state.name,
                "status": status,
                "seconds": seconds,
                "calls": len(state.records),
            },
        )

    def _settings(self, query: Query, setup: StageSetup) -> tuple[StageSettings, PartSkipped | None]:
        """Return the settings of a stage, and what of it is left out since the query would be late with it."""
        stage = setup.stage
        sampling = stage.sampling
        further = {"top_p": sampling.top_p, "top_k": sampling.top_k} if sampling else {}
        settings = StageSettings(
            name=stage.name,
            max_tokens=stage.max_tokens,
            temperature=sampling.temperature if sampling else None,
            sampling={name: value for name, value in further.items() if value is not None},
            on_timeout=stage.on_timeout,
            sample_values=query.workflow.databases[query.database].database.sample_values > 0,
            limits=self.limits,
        )
        asked = stage.fan_out or settings.fan_out
        fan_out = max(1, int(asked * query.share)) if stage.kind == "CandidateGeneration" else asked
        settings = replace(
            settings,
            fan_out=fan_out,
            samples=stage.samples or settings.samples,
            max_rounds=stage.max_rounds or settings.max_rounds,
        )
        if fan_out == asked:
            return settings, None
        what = f"{asked - fan_out} of {asked} candidates"
        return settings, PartSkipped(stage=stage.name, what=what, why="it would be late with all")

    def _model(self, query: Query, setup: StageSetup, state: StageState, progress: Progress) -> StageModel:
        sampling = setup.stage.sampling

        def budget() -> float | None:
            return progress.budget(self.clock(), state.name, self._costs(query))

        def placed(record: CallRecord) -> None:
            query.events.publish("call.placed", _call_data(state, record))

        def ended(record: CallRecord) -> None:
            query.events.publish("call.finished", _call_data(state, record))

        return StageModel(
            calls=StageCalls(
                query_id=query.query_id,
                workflow=query.workflow.name,
                tenant=query.tenant.name,
                tenant_weight=query.tenant.weight,
                stage=state.name,
                model=setup.model,
                pools=setup.pools,
                first_seed=(sampling.seed or 0) if sampling else 0,
                headers=(
                    ("x-hexflow-workflow", query.workflow.name),
                    ("x-hexflow-query", query.query_id),
                    ("x-hexflow-stage", state.name),
                    *query.trace_headers,
                ),
                arrival=query.arrival,
                deadline=query.deadline,
                expires=query.expires,
                droppable=query.workflow.workflow.spec.scheduling.drop_late_candidates,
            ),
            release_calls=self.release,
            clock=self.clock,
            budget=budget,
            new_id=self.new_id,
            count_tokens=estimate_tokens,
            on_placed=placed,
            on_ended=ended,
            records=state.records,
        )

    def _costs(self, query: Query) -> dict[str, float]:
        return {
            setup.stage.name: self.stage_seconds(
                query.workflow.name, setup.stage.name, setup.model, setup.pools
            )
            for setup in query.workflow.stages
        }

    def _observe(self, query: Query, state: StageState, event: Event) -> None:
        data = asdict(event)
        if isinstance(event, StatementTried):
            data["seconds"] = self.scale.emulated_seconds(event.seconds)
            if not event.reused:
                state.statements += 1
                state.statement_seconds += data["seconds"]
                self.metrics.count("hexflow_statements_total", query.workflow.name, statement_result(event))
                self.metrics.observe("hexflow_statement_seconds", data["seconds"], query.workflow.name)
        if isinstance(event, CandidateExtracted):
            query.tried[event.candidate] = CandidateReport(
                sql=event.sql, error=event.problem, rounds=event.round
            )
        elif isinstance(event, StatementTried):
            query.tried[event.candidate] = CandidateReport(
                sql=event.sql, error=event.error, rounds=event.round
            )
        elif isinstance(event, PartSkipped):
            state.skipped.append(f"{event.what}: {event.why}")
        query.events.publish(_dotted(type(event).__name__), data)


@dataclass(frozen=True, slots=True)
class _Timed:
    """A database whose limits are told in the router's seconds, and that counts in real ones."""

    database: Database
    scale: TimeScale

    @property
    def name(self) -> str:
        return self.database.name

    @property
    def dialect(self) -> str:
        return self.database.dialect

    async def schema(self) -> Schema:
        return await self.database.schema()

    async def values(self) -> ValueIndex:
        return await self.database.values()

    async def execute(self, sql: str, limits: Limits) -> Result:
        # A database runs no faster under a time scale: a late query's statement gets a fair chance.
        least = min(limits.seconds, LEAST_STATEMENT_SECONDS)
        real = max(self.scale.real_seconds(limits.seconds), least)
        return await self.database.execute(sql, replace(limits, seconds=real))

    async def close(self) -> None:
        await self.database.close()


def _time_left(query: Query, stage: Stage) -> Callable[[], float]:
    """Return the stage's clock: one that says Continue is never short of time (``hard_cap_factor`` still ends it)."""
    return (lambda: math.inf) if stage.on_timeout == "Continue" else query.time_left


def _call_data(state: StageState, record: CallRecord) -> dict[str, object]:
    return {"stage": state.name, **call_report(record).model_dump(mode="json", by_alias=True)}


def statement_result(event: StatementTried) -> str:
    """Return how a statement is counted: Succeeded, TimedOut, Refused (the guard saw no plain query) or Failed."""
    if event.error is None:
        return "Succeeded"
    if event.reason == "TimedOut":
        return "TimedOut"
    return "Refused" if event.reason in REFUSALS else "Failed"


def _dotted(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", ".", name).lower()
