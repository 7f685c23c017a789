"""The shapes of CHESS queries, fitted to what was published of their calls.

``data/chess_stages.csv`` holds, for each of five logs of CHESS answering BIRD questions with Llama-3.1-70B, the
least, median, mean, 95th percentile and most of prompt and output by stage. They are aggregates of the logs
with which HexGen-Flow (arXiv 2505.05286) was evaluated, reckoned by us; the logs themselves are not here.
Tokens of the templates are those that all prompts of a stage begin with.

``financial`` and ``formula1`` are logs as they were; ``trace1`` to ``trace3`` were drawn from them by their authors so that
the number of corrections is about uniform.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hexflow_simulator.shape import CallShape, QueryShape, StageShape
from hexflow_simulator.spread import Spread, binomial, constant, declining, evenly, through, tilted

TEMPLATE_TOKENS = {
    "retriever": 213,
    "keywords": 630,
    "candidate-one": 9158,
    "candidate-two": 5292,
    "revise": 3059,
    "tester": 213,
    "unit-tests": 436,
    "evaluate": 261,
}
"""Tokens that every prompt of a stage begins with."""

SOURCES = ("financial", "formula1", "trace1", "trace2", "trace3")
"""The logs."""

STEPS = (
    "retriever",
    "keywords",
    "retriever-again",
    "retriever-again",
    "retriever-again",
    "candidate",
    "revise",
    "revise",
    "revise",
    "revise",
    "tester",
    "unit-tests",
    "tester-2",
    "evaluate",
    "tester-3",
)
"""The fixed template of fifteen steps by which the authors reckon a query's SLO."""

_DRAFTS_FOLLOW = 0.85
"""Two drafts of one query are correlated by 0.65 to 0.82; 0.85 squared is 0.72."""
_ROUNDS_FOLLOW = {"financial": 0.65, "formula1": 0.65}
"""Corrections and the first draft's length are correlated by 0.36 and 0.57 in the logs as they were, ..."""
_ROUNDS_FOLLOW_ELSEWHERE = 0.45
"""... and by 0.24 to 0.34 in the drawn ones."""
_TEST_TOKENS = evenly(17, 33)
"""What the tests of one query differ by: a standard deviation of 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Hold what is known of a quantity."""

    least: float
    median: float
    mean: float
    p95: float
    most: float

    def spread(self, *, less: float = 0) -> Spread:
        """Return the spread of the quantity, or of what it is over ``less``."""
        return through(
            least=max(0.0, self.least - less),
            median=self.median - less,
            mean=self.mean - less,
            p95=self.p95 - less,
            most=self.most - less,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAggregate:
    """Hold what is known of the calls of a stage in a log."""

    calls: int
    """Calls in the log."""
    per_query: float
    per_query_most: int
    none: float
    """Share of the queries without one."""
    prompt: Aggregate
    output: Aggregate


@cache
def aggregates(source: str) -> Mapping[str, StageAggregate]:
    """Return what is known of a log, by stage; ``error`` is what a correction's prompt adds to its query's."""
    table = files(__package__) / "data" / "chess_stages.csv"
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return {row["step"]: _aggregate(row) for row in rows if row["trace"] == source}


def _aggregate(row: Mapping[str, str]) -> StageAggregate:
    prompt, output = (
        Aggregate(
            **{
                name: float(row[f"{side}_{column}"] or 0)
                for name, column in (
                    ("least", "min"),
                    ("median", "p50"),
                    ("mean", "mean"),
                    ("p95", "p95"),
                    ("most", "max"),
                )
            }
        )
        for side in ("in", "out")
    )
    return StageAggregate(
        calls=int(row["calls"]),
        per_query=float(row["per_query_mean"] or 0),
        per_query_most=int(row["per_query_max"] or 0),
        none=float(row["per_query_none"] or 0),
        prompt=prompt,
        output=output,
    )


def schema_tokens(source: str) -> int:
    """Return the tokens of the schema: what a log's shortest draft adds to its template and the shortest question.

    ``trace3`` mixes two databases; ``own_databases`` tells them apart.
    """
    known = aggregates(source)
    return round(known["candidate-two"].prompt.least - TEMPLATE_TOKENS["candidate-two"] - _question(source))


def own_databases(source: str) -> tuple[tuple[float, int], ...]:
    """Return the databases of a log: each one's share of the queries and the tokens of its schema."""
    if source != "trace3":
        return ((1.0, schema_tokens(source)),)
    small, large = schema_tokens("trace1"), schema_tokens("trace2")
    mean = aggregates(source)["candidate-two"].prompt.mean - TEMPLATE_TOKENS["candidate-two"]
    share = (mean - _asked("trace1").mean - small) / (large - small)
    return ((round(1 - share, 3), small), (round(share, 3), large))


@cache
def shape(source: str) -> QueryShape:
    """Return the shape of the queries of a log."""
    known = aggregates(source)
    asked = _asked("trace1" if source == "trace3" else source)  # trace3's drafts come from two databases

    def plain(stage: str, kind: str, row: str = "") -> StageShape:
        own = known[row or stage].prompt.spread(less=TEMPLATE_TOKENS[kind])
        output = known[row or stage].output.spread()
        return StageShape(
            name=stage,
            kinds=(CallShape(template_tokens=TEMPLATE_TOKENS[kind], own=own, output=output),),
            calls=constant(1).or_none(known[row or stage].none),
        )

    def draft(kind: str) -> CallShape:
        return CallShape(
            template_tokens=TEMPLATE_TOKENS[kind],
            schema=True,
            question=asked,
            output=known[kind].output.spread(),
        )

    revise, evaluate = known["revise"], known["evaluate"]
    again = plain("retriever-again", "retriever")
    return QueryShape(
        name=source,
        stages=(
            plain("retriever", "retriever"),
            plain("keywords", "keywords"),
            StageShape(name="retriever-again", kinds=again.kinds, rounds=constant(3)),
            StageShape(
                name="candidate",
                kinds=(draft("candidate-one"), draft("candidate-two")),
                calls=constant(2),
                hard_output=_DRAFTS_FOLLOW,
            ),
            StageShape(
                name="revise",
                kinds=(
                    CallShape(
                        template_tokens=TEMPLATE_TOKENS["revise"],
                        schema=True,
                        question=asked,
                        own=known["error"].prompt.spread(),
                        output=revise.output.spread(),
                    ),
                ),
                rounds=rounds(source),
                hard_rounds=_ROUNDS_FOLLOW.get(source, _ROUNDS_FOLLOW_ELSEWHERE),
                shared=True,
            ),
            plain("tester", "tester"),
            plain("unit-tests", "unit-tests"),
            plain("tester-2", "tester", "tester"),
            StageShape(
                name="evaluate",
                kinds=(
                    CallShape(
                        template_tokens=TEMPLATE_TOKENS["evaluate"],
                        question=evaluate.prompt.spread(less=TEMPLATE_TOKENS["evaluate"] + _TEST_TOKENS.mean),
                        own=_TEST_TOKENS,
                        output=evaluate.output.spread(),
                    ),
                ),
                calls=binomial(
                    least=min(2, evaluate.per_query_most - 1),
                    most=evaluate.per_query_most,
                    mean=evaluate.per_query / (1 - evaluate.none),
                ),
                unless_skipped="unit-tests",
                shared=True,
            ),
            plain("tester-3", "tester", "tester"),
        ),
    )


def rounds(source: str) -> Spread:
    """Return the spread of a query's corrections.

    The logs as they were: none in most queries, and in the others a number
    that falls like a power: 12 of the 25 corrected queries of ``financial`` needed one, 3 needed 8 or 10. The drawn ones: about uniform from 0.
    """
    known = aggregates(source)["revise"]
    if source in ("financial", "formula1"):
        some = 1 - known.none
        return declining(least=1, most=known.per_query_most, mean=known.per_query / some).or_none(known.none)
    return tilted(least=0, most=known.per_query_most, mean=known.per_query)


def _question(source: str) -> float:
    return aggregates(source)["keywords"].prompt.least - TEMPLATE_TOKENS["keywords"]


def _asked(source: str) -> Spread:
    prompt = aggregates(source)["candidate-two"].prompt
    return prompt.spread(less=TEMPLATE_TOKENS["candidate-two"] + schema_tokens(source))
