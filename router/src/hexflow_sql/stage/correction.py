"""Self-correction: run each candidate, and let the model repair what the database refuses.

A chain for each candidate; chains do not wait for each other. A chain ends with rows, at its round limit,
when it is late, or when nothing changes: the same statement or the same error again. An empty result is no
error; one repair is asked for, and only when a text in WHERE does not occur in its column.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace

from hexflow_sql.completion import Completion, CompletionError, CompletionRequest, LanguageModel
from hexflow_sql.database.protocol import Database
from hexflow_sql.draft import Candidate, Draft, raise_no_answer
from hexflow_sql.literals import missing_texts
from hexflow_sql.prompt import correction
from hexflow_sql.stage.candidates import read_candidate
from hexflow_sql.stage.events import CandidateExtracted, Observer, PartSkipped
from hexflow_sql.stage.protocol import Sleep, StageSettings, TimeLeft
from hexflow_sql.stage.shown import shown_schema
from hexflow_sql.stage.statements import Outcome, Statements, folded
from hexflow_sql.stage.waiting import collect, fail_if_late
from hexflow_sql.values import ValueIndex

MAX_TOKENS = 800

SEED_STEP = 100
"""Distance between the seeds of two rounds."""


class SelfCorrection:
    """Run candidates and have them repaired (see ``Stage``)."""

    kind = "SelfCorrection"

    def __init__(self, settings: StageSettings) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        """Its name in the workflow."""
        return self._settings.name

    async def run(
        self,
        draft: Draft,
        *,
        model: LanguageModel,
        database: Database,
        time_left: TimeLeft,
        observe: Observer,
        sleep: Sleep | None = None,
    ) -> Draft:
        """Correct (see ``Stage.run``). Raises AllCandidatesFailed, NoStatement, Unanswerable."""
        fail_if_late(self._settings, time_left)
        statements = Statements(
            database=database,
            settings=self._settings,
            time_left=time_left,
            observe=observe,
            known=draft.candidates,
        )
        chains = [
            _Chain(
                entry,
                draft=draft,
                settings=self._settings,
                statements=statements,
                model=model,
                database=database,
                time_left=time_left,
                observe=observe,
                sleep=sleep or asyncio.sleep,
                answered=lambda: any(chain.candidate.usable for chain in chains),
            )
            for entry in draft.candidates
        ]
        try:
            unfinished = await self._all(chains, time_left=time_left, sleep=sleep or asyncio.sleep)
        finally:
            await statements.close()
        unfinished += sum(chain.dropped for chain in chains)
        if unfinished:
            what = f"corrections of {unfinished} of {len(chains)} candidates"
            observe(PartSkipped(stage=self.name, what=what, why="it is late"))
            draft = draft.skip(self.name, what, "it is late")
        draft = draft.with_candidates(tuple(chain.candidate for chain in chains))
        if not any(candidate.usable for candidate in draft.candidates):
            raise_no_answer(draft)
        return draft

    async def _all(self, chains: list["_Chain"], *, time_left: TimeLeft, sleep: Sleep) -> int:
        """Run all chains; once it is late and one has rows, end the others. Returns how many were ended."""
        left = time_left()
        timer = None if math.isinf(left) else asyncio.ensure_future(sleep(max(0.0, left)))
        tasks = [asyncio.ensure_future(chain.run()) for chain in chains]
        waiting: set[asyncio.Future[None]] = {*tasks}
        if timer is not None:
            waiting.add(timer)
        try:
            while any(not task.done() for task in tasks):
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                if timer is not None and timer.done():
                    fail_if_late(self._settings, time_left)
                    if any(chain.candidate.usable for chain in chains):
                        break
            return sum(not task.done() for task in tasks)
        finally:
            everything = [*tasks, *([timer] if timer is not None else [])]
            for future in everything:
                future.cancel()
            await asyncio.gather(*everything, return_exceptions=True)


class _Chain:
    """One candidate's way from its first run to its last correction."""

    def __init__(
        self,
        candidate: Candidate,
        *,
        draft: Draft,
        settings: StageSettings,
        statements: Statements,
        model: LanguageModel,
        database: Database,
        time_left: TimeLeft,
        observe: Observer,
        sleep: Sleep,
        answered: Callable[[], bool],
    ) -> None:
        self.candidate = candidate
        self.dropped = False
        """Whether a correction was given up for want of time."""
        self._draft = draft
        self._settings = settings
        self._statements = statements
        self._model = model
        self._database = database
        self._time_left = time_left
        self._observe = observe
        self._sleep = sleep
        self._answered = answered
        self._tried: list[str] = []
        self._errors: list[str] = []

    async def run(self) -> None:
        """Run until nothing more is to be gained; ``candidate`` is always the state so far."""
        if self.candidate.sql is None:
            return
        await self._try(self.candidate)
        for round_number in range(1, self._settings.max_rounds + 1):
            complaint = await self._complaint()
            if complaint is None or self._out_of_time(round_number):
                return
            repaired = await self._repair(complaint, round_number)
            if repaired is None or not await self._try(repaired):
                return

    async def _try(self, candidate: Candidate) -> bool:
        """Run a statement and keep it; False when its error is one that was there before."""
        assert candidate.sql is not None  # noqa: S101 - callers made sure
        self._tried.append(folded(candidate.sql))
        outcome = await self._statements.run(candidate.sql, candidate=candidate.index, round=candidate.rounds)
        repeated = outcome.error is not None and outcome.error in self._errors
        if outcome.error is not None:
            self._errors.append(outcome.error)
        if outcome.error is None or not self.candidate.usable:
            self.candidate = _with(candidate, outcome)
            return not repeated
        # The repair of an empty result failed: the empty result was the better answer.
        self.candidate = replace(self.candidate, rounds=candidate.rounds)
        return False

    async def _complaint(self) -> str | None:
        """Say what is wrong with the candidate as it stands; None if nothing is."""
        result = self.candidate.result
        if result is None:
            return self.candidate.error
        if result.rows or self.candidate.rounds or self.candidate.sql is None:
            return None
        index: ValueIndex = await self._database.values()
        missing = missing_texts(self.candidate.sql, schema=self._draft.schema, index=index)
        if not missing:
            return None
        texts = "; ".join(f"{match.table}.{match.column} has no {match.value!r}" for match in missing)
        return f"the statement runs and gives no rows; {texts}"

    def _out_of_time(self, round_number: int) -> bool:
        """Late chains stop; one without rows may try once, since a late answer beats none."""
        return self._time_left() <= 0 and (self.candidate.usable or round_number > 1)

    async def _repair(self, complaint: str, round_number: int) -> Candidate | None:
        settings, before = self._settings, self.candidate
        blocks = correction(
            self._draft,
            schema=shown_schema(self._draft, settings),
            samples=settings.sample_values,
            sql=before.sql or "",
            error=complaint,
            earlier=self._tried[:-1],
        )
        request = CompletionRequest(
            task="correction",
            blocks=blocks,
            max_tokens=settings.max_tokens or MAX_TOKENS,
            temperature=settings.temperature or 0.0,
            seed=SEED_STEP * round_number + before.index,
            sampling=settings.sampling,
            round=round_number - 1,
            sibling=before.index,
            optional=self._answered(),
        )
        (ended,) = await collect(
            self._model.release([request]),
            time_left=self._time_left,
            sleep=self._sleep,
            enough=lambda _: True,
            settings=settings,
        )
        self.dropped = ended is None
        self.candidate = replace(before, rounds=round_number)
        if not isinstance(ended, Completion) or not ended.texts:
            if isinstance(ended, CompletionError) and before.result is None:
                self.candidate = replace(self.candidate, error=f"{before.error}; no correction: {ended}")
            return None
        finish_reason = ended.finish_reasons[0] if ended.finish_reasons else "stop"
        repaired = read_candidate(
            self.candidate, ended.texts[0], dialect=self._draft.schema.dialect, finish_reason=finish_reason
        )
        self._observe(
            CandidateExtracted(
                stage=settings.name,
                candidate=before.index,
                round=round_number,
                sql=repaired.sql,
                problem=repaired.error or repaired.refusal,
            )
        )
        if repaired.refusal is not None and before.result is None:
            self.candidate = replace(self.candidate, refusal=repaired.refusal)
        if repaired.sql is None or folded(repaired.sql) in self._tried:
            return None
        return repaired


def _with(candidate: Candidate, outcome: Outcome) -> Candidate:
    return replace(candidate, result=outcome.result, error=outcome.error, reason=outcome.reason)
