"""Evaluation: group candidates by their results, and choose.

Agreement ends it. Otherwise unit tests are written, each is put to all groups in a request of its own, and
the group that passes most wins; ties go to the larger group. Late, the largest group wins untested.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hexflow_sql.compare import cluster_statements
from hexflow_sql.completion import Completion, CompletionError, CompletionRequest, LanguageModel
from hexflow_sql.database.protocol import Database
from hexflow_sql.draft import Candidate, Draft, settle
from hexflow_sql.extract import read_json
from hexflow_sql.prompt import choice, unit_tests
from hexflow_sql.stage.events import CandidateChosen, Observer, PartSkipped, ResultsCompared, UnitTestJudged
from hexflow_sql.stage.protocol import Sleep, StageSettings, TimeLeft
from hexflow_sql.stage.shown import shown_schema
from hexflow_sql.stage.statements import Statements
from hexflow_sql.stage.waiting import Ended, collect, fail_if_late

TESTS_MAX_TOKENS = 600
CHOICE_MAX_TOKENS = 400

Clusters = tuple[tuple[int, ...], ...]


class Evaluation:
    """Choose the candidate that answers (see ``Stage``)."""

    kind = "Evaluation"

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
        """Choose (see ``Stage.run``). Raises AllCandidatesFailed, NoStatement, Unanswerable."""
        fail_if_late(self._settings, time_left)
        draft = await self._executed(draft, database=database, time_left=time_left, observe=observe)
        results = [
            (entry.index, entry.sql or "", entry.result)
            for entry in draft.candidates
            if entry.result is not None
        ]
        if not results:
            settle(draft)
        clusters = cluster_statements(results, dialect=draft.schema.dialect)
        observe(ResultsCompared(stage=self.name, clusters=clusters))
        draft = _voted(draft, clusters)
        if len(clusters) == 1:
            return self._choose(draft, clusters[0][0], "all results agree", observe)
        if time_left() <= 0 or self._settings.fan_out < 1:
            why = "it is late" if time_left() <= 0 else "the workflow asks for none"
            draft = self._skip(draft, why, observe)
            return self._choose(draft, clusters[0][0], "the largest group", observe)
        wait = _Waiting(
            model=model, time_left=time_left, sleep=sleep or asyncio.sleep, settings=self._settings
        )
        judged = [draft.candidates[cluster[0]] for cluster in clusters]
        tests = await self._tests(draft, judged, wait)
        if not tests:
            draft = self._skip(draft, "no unit test was written", observe)
            return self._choose(draft, clusters[0][0], "the largest group", observe)
        draft = replace(draft, tests=tests)
        draft, judgements = await self._judge(draft, judged, wait, observe)
        draft = _passed(draft, clusters, judgements)
        if not judgements:
            draft = self._skip(draft, "no unit test was judged", observe)
        best = max(
            clusters,
            key=lambda cluster: (draft.candidates[cluster[0]].passed, len(cluster), -cluster[0]),
        )
        return self._choose(draft, best[0], "it passes most unit tests", observe)

    async def _executed(
        self, draft: Draft, *, database: Database, time_left: TimeLeft, observe: Observer
    ) -> Draft:
        """Run what no stage before has run."""
        pending = [
            entry
            for entry in draft.candidates
            if entry.sql is not None and not entry.usable and entry.error is None
        ]
        if not pending:
            return draft
        statements = Statements(
            database=database,
            settings=self._settings,
            time_left=time_left,
            observe=observe,
            known=draft.candidates,
        )
        try:
            outcomes = await asyncio.gather(
                *(statements.run(entry.sql or "", candidate=entry.index, round=0) for entry in pending)
            )
        finally:
            await statements.close()
        done = {
            entry.index: replace(entry, result=outcome.result, error=outcome.error, reason=outcome.reason)
            for entry, outcome in zip(pending, outcomes, strict=True)
        }
        return draft.with_candidates(tuple(done.get(entry.index, entry) for entry in draft.candidates))

    async def _tests(self, draft: Draft, judged: Sequence[Candidate], wait: "_Waiting") -> tuple[str, ...]:
        settings = self._settings
        most = settings.fan_out
        blocks = unit_tests(
            draft,
            schema=shown_schema(draft, settings),
            samples=settings.sample_values,
            candidates=judged,
            most=most,
        )
        request = CompletionRequest(
            task="unit-tests",
            blocks=blocks,
            max_tokens=settings.max_tokens or TESTS_MAX_TOKENS,
            temperature=settings.temperature or 0.0,
            seed=0,
            sampling=settings.sampling,
            response_format=_json_object("unit_tests", "tests", {"type": "string"}),
        )
        (ended,) = await wait.collect([request])
        data = read_json(ended.texts[0]) if isinstance(ended, Completion) and ended.texts else None
        listed = data.get("tests") if isinstance(data, Mapping) else data
        texts = (
            [text for text in listed if isinstance(text, str) and text.strip()]
            if isinstance(listed, list)
            else []
        )
        return tuple(dict.fromkeys(texts))[:most]

    async def _judge(
        self, draft: Draft, judged: Sequence[Candidate], wait: "_Waiting", observe: Observer
    ) -> tuple[Draft, list[frozenset[int]]]:
        settings = self._settings
        requests = [
            CompletionRequest(
                task="choice",
                blocks=choice(
                    draft,
                    schema=shown_schema(draft, settings),
                    samples=settings.sample_values,
                    candidates=judged,
                    test=test,
                ),
                max_tokens=settings.max_tokens or CHOICE_MAX_TOKENS,
                temperature=settings.temperature or 0.0,
                seed=place,
                sampling=settings.sampling,
                response_format=_json_object("choice", "passes", {"type": "integer"}),
                round=1,
                sibling=place,
            )
            for place, test in enumerate(draft.tests)
        ]
        known = frozenset(entry.index for entry in judged)
        judgements: list[frozenset[int]] = []
        missing = 0
        outcomes = await wait.collect(requests, lambda so_far: _decided(so_far, known))
        for test, ended in zip(draft.tests, outcomes, strict=True):
            passed = read_passes(ended, known)
            if passed is None:
                missing += 1
                continue
            judgements.append(passed)
            observe(UnitTestJudged(stage=self.name, test=test, passed=tuple(sorted(passed))))
        if missing and not _decided(outcomes, known):
            draft = draft.skip(self.name, f"{missing} of {len(draft.tests)} unit tests", "no judgement came")
        return draft, judgements

    def _choose(self, draft: Draft, index: int, why: str, observe: Observer) -> Draft:
        entry = draft.candidates[index]
        observe(
            CandidateChosen(stage=self.name, candidate=index, votes=entry.votes, passed=entry.passed, why=why)
        )
        return replace(draft, chosen=index)

    def _skip(self, draft: Draft, why: str, observe: Observer) -> Draft:
        observe(PartSkipped(stage=self.name, what="unit tests", why=why))
        return draft.skip(self.name, "unit tests", why)


class _Waiting:
    """What both kinds of requests of this stage need to be waited for."""

    def __init__(
        self, *, model: LanguageModel, time_left: TimeLeft, sleep: Sleep, settings: StageSettings
    ) -> None:
        self._model = model
        self._time_left = time_left
        self._sleep = sleep
        self._settings = settings

    async def collect(
        self,
        requests: Sequence[CompletionRequest],
        decided: Callable[[Sequence[Ended]], bool] = lambda _: False,
    ) -> list[Ended]:
        return await collect(
            self._model.release(requests),
            time_left=self._time_left,
            sleep=self._sleep,
            enough=lambda _: True,
            settings=self._settings,
            decided=decided,
        )


def read_passes(ended: Ended, known: frozenset[int]) -> frozenset[int] | None:
    """Read which candidates (by index, from 0) pass; None where the text says nothing of it."""
    if ended is None or isinstance(ended, CompletionError) or not ended.texts:
        return None
    data = read_json(ended.texts[0])
    listed = data.get("passes") if isinstance(data, Mapping) else data
    if not isinstance(listed, list):
        return None
    numbers = {str(number).strip() for number in listed if isinstance(number, int | str)}
    return frozenset(index for index in known if str(index + 1) in numbers)


def _decided(so_far: Sequence[Ended], known: frozenset[int]) -> bool:
    """Say whether one candidate leads by more tests than are still to be judged."""
    read = [passes for ended in so_far if (passes := read_passes(ended, known)) is not None]
    waiting = sum(ended is None for ended in so_far)
    scores = sorted((sum(index in passes for passes in read) for index in known), reverse=True)
    return waiting > 0 and scores[0] - scores[1] > waiting


def _voted(draft: Draft, clusters: Clusters) -> Draft:
    votes = {index: len(cluster) for cluster in clusters for index in cluster}
    return draft.with_candidates(
        tuple(replace(entry, votes=votes.get(entry.index, 0)) for entry in draft.candidates)
    )


def _passed(draft: Draft, clusters: Clusters, judgements: Sequence[frozenset[int]]) -> Draft:
    """Give every member of a group what its first member passed."""
    passed = {
        index: sum(cluster[0] in judgement for judgement in judgements)
        for cluster in clusters
        for index in cluster
    }
    return draft.with_candidates(
        tuple(replace(entry, passed=passed.get(entry.index, 0)) for entry in draft.candidates)
    )


def _json_object(name: str, field: str, items: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {
            "name": name,
            "schema": {
                "type": "object",
                "properties": {"reasoning": {"type": "string"}, field: {"type": "array", "items": items}},
                "required": [field],
            },
        },
    }
