"""Candidate generation: several statements for one question, asked for at once."""

import asyncio
from dataclasses import replace

from hexflow_sql.completion import Completion, CompletionError, CompletionRequest, LanguageModel
from hexflow_sql.database.protocol import Database
from hexflow_sql.draft import QUOTED_CHARACTERS, Candidate, Draft, raise_no_answer
from hexflow_sql.extract import extract
from hexflow_sql.prompt import candidate
from hexflow_sql.stage.events import CandidateExtracted, Observer, PartSkipped
from hexflow_sql.stage.protocol import Sleep, StageSettings, TimeLeft
from hexflow_sql.stage.shown import shown_schema
from hexflow_sql.stage.waiting import Ended, collect, fail_if_late

MAX_TOKENS = 1_200
"""Twice what recorded candidates took."""

TEMPERATURE = 0.7
"""Of every candidate but the first, which takes 0: variety is what the others are for."""


class CandidateGeneration:
    """Ask for candidates (see ``Stage``)."""

    kind = "CandidateGeneration"

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
        """Generate candidates (see ``Stage.run``). Raises NoStatement, Unanswerable."""
        settings = self._settings
        fail_if_late(settings, time_left)
        fan_out = max(1, settings.fan_out)
        if time_left() <= 0 and fan_out > 1:
            draft = self._skip(draft, f"{fan_out - 1} of {fan_out} candidates", observe)
            fan_out = 1
        blocks = candidate(draft, schema=shown_schema(draft, settings), samples=settings.sample_values)
        requests = [
            CompletionRequest(
                task="candidate",
                blocks=blocks,
                max_tokens=settings.max_tokens or MAX_TOKENS,
                temperature=self._temperature(place),
                seed=place * settings.samples,
                samples=settings.samples,
                sampling=settings.sampling,
                sibling=place,
                optional=fan_out > 1,
            )
            for place in range(fan_out)
        ]
        dialect = draft.schema.dialect
        ended = await collect(
            model.release(requests),
            time_left=time_left,
            sleep=sleep or asyncio.sleep,
            enough=lambda completion: any(extract(text, dialect=dialect).sql for text in completion.texts),
            settings=settings,
        )
        errors = [end for end in ended if isinstance(end, CompletionError)]
        if errors and not any(isinstance(end, Completion) for end in ended):
            raise errors[0]
        missing = sum(end is None for end in ended)
        if missing:
            draft = self._skip(draft, f"{missing} of {fan_out} candidates", observe)
        draft = draft.with_candidates(self._candidates(ended, dialect, observe))
        raise_no_answer(draft)
        return draft

    def _temperature(self, place: int) -> float:
        if self._settings.temperature is not None:
            return self._settings.temperature
        return 0.0 if place == 0 and self._settings.samples == 1 else TEMPERATURE

    def _candidates(self, ended: list[Ended], dialect: str, observe: Observer) -> tuple[Candidate, ...]:
        found: list[Candidate] = []
        for end in ended:
            if end is None:
                continue
            if isinstance(end, CompletionError):
                found.append(Candidate(index=len(found), error=str(end), reason=end.reason))
                continue
            texts = end.texts[: self._settings.samples]  # an engine may send more than it was asked for
            reasons = (*end.finish_reasons, *["stop"] * len(texts))
            for text, reason in zip(texts, reasons, strict=False):
                read = read_candidate(
                    Candidate(index=len(found)), text, dialect=dialect, finish_reason=reason
                )
                found.append(read)
                observe(
                    CandidateExtracted(
                        stage=self.name,
                        candidate=read.index,
                        round=0,
                        sql=read.sql,
                        problem=read.error or read.refusal,
                    )
                )
        return tuple(found)

    def _skip(self, draft: Draft, what: str, observe: Observer) -> Draft:
        observe(PartSkipped(stage=self.name, what=what, why="it is late"))
        return draft.skip(self.name, what, "it is late")


def read_candidate(before: Candidate, text: str, *, dialect: str, finish_reason: str) -> Candidate:
    """Read a model's text into a candidate: its statement, its refusal, or why there is neither."""
    read = extract(text, dialect=dialect, finish_reason=finish_reason)
    return replace(
        before,
        sql=read.sql,
        refusal=read.refusal,
        error=read.problem,
        reason=None
        if read.problem is None
        else ("Truncated" if finish_reason == "length" else "NoStatement"),
        result=None,
        text=text[-QUOTED_CHARACTERS:] if read.sql else text[:QUOTED_CHARACTERS],
    )
