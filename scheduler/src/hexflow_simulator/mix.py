"""Mixes by name: what kinds of queries come, and in which shares.

``natural`` and ``stratified`` are CHESS's pipeline as logged and as published; ``modern`` and ``short`` are pipelines of
our own making, of which only the outline is given. ``docs/explanation/workloads.md`` says where each number is from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from hexflow_simulator import chess
from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.shape import CallShape, QueryShape, StageShape
from hexflow_simulator.spread import constant, evenly, lognormal, tilted


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A kind of query and its own databases."""

    weight: float
    shape: QueryShape
    databases: tuple[tuple[float, int], ...]
    """Share of the queries and tokens of the schema, for each of its databases."""

    @property
    def schema_tokens(self) -> float:
        """Mean over its queries."""
        return sum(share * tokens for share, tokens in self.databases) / sum(s for s, _ in self.databases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Name the kinds of queries that come."""

    name: str
    parts: tuple[Part, ...]

    @property
    def schema_tokens(self) -> float:
        """Mean tokens of the schema over the queries."""
        weights = sum(part.weight for part in self.parts)
        return sum(part.weight * part.schema_tokens for part in self.parts) / weights


def mix_named(name: str) -> Mix:
    """Return a mix by name; raises InvalidWorkload with the names there are."""
    if name not in MIXES:
        raise InvalidWorkload(f"no mix is called {name!r}; there are: {', '.join(MIXES)}")
    return MIXES[name]()


def _logged(name: str, *sources: str) -> Mix:
    """Return a mix of logs, each weighing as many queries as it has."""
    return Mix(
        name=name,
        parts=tuple(
            Part(
                weight=chess.aggregates(source)["candidate-one"].calls,
                shape=chess.shape(source),
                databases=chess.own_databases(source),
            )
            for source in sources
        ),
    )


def _natural() -> Mix:
    """Return both logs in equal parts: the larger one (94 queries of 123) is about an easy database."""
    return Mix(
        name="natural",
        parts=tuple(replace(part, weight=1.0) for part in _logged("natural", "financial", "formula1").parts),
    )


_CLOSING = constant(16)
"""Words that close a prompt. An engine computes the last block of a prompt itself, so they are in no shared one."""


def _modern() -> Mix:
    """Link a schema of 30,000 tokens; draft, correct and judge over the 4,000 to 8,000 that are left of it."""
    pruned = evenly(4000, 8000)
    shape = QueryShape(
        name="modern",
        stages=(
            StageShape(
                name="link",
                kinds=(
                    CallShape(
                        template_tokens=800,
                        schema=True,
                        question=evenly(20, 120),
                        output=lognormal(mean=220, sigma=0.4, least=40, most=900),
                    ),
                ),
            ),
            StageShape(
                name="candidate",
                kinds=(
                    CallShape(
                        template_tokens=1500,
                        question=pruned,
                        own=_CLOSING,
                        output=lognormal(mean=430, sigma=0.4, least=60, most=1500),
                    ),
                ),
                calls=evenly(4, 8),
                shared=True,
                hard_output=0.3,
            ),
            StageShape(
                name="revise",
                kinds=(
                    CallShape(
                        template_tokens=1000,
                        question=pruned,
                        own=lognormal(mean=400, sigma=0.5, least=80, most=3000),
                        output=lognormal(mean=265, sigma=0.5, least=30, most=1200),
                    ),
                ),
                like="candidate",
                each=0.3,
                rounds=tilted(least=1, most=4, mean=1.6),
                shared=True,
            ),
            StageShape(
                name="evaluate",
                kinds=(
                    CallShape(
                        template_tokens=500,
                        question=evenly(1200, 2400),
                        own=evenly(100, 300),
                        output=lognormal(mean=60, sigma=0.5, least=10, most=400),
                    ),
                ),
                like="candidate",
                shared=True,
            ),
        ),
    )
    return Mix(name="modern", parts=(Part(weight=1, shape=shape, databases=((1.0, 30_000),)),))


def _short() -> Mix:
    """Answer over a schema of 1,200 tokens: four drafts, their corrections, one judgement."""
    question = evenly(20, 120)
    shape = QueryShape(
        name="short",
        stages=(
            StageShape(
                name="link",
                kinds=(
                    CallShape(
                        template_tokens=400,
                        schema=True,
                        question=question,
                        output=lognormal(mean=100, sigma=0.4, least=20, most=400),
                    ),
                ),
            ),
            StageShape(
                name="candidate",
                kinds=(
                    CallShape(
                        template_tokens=600,
                        schema=True,
                        question=question,
                        own=_CLOSING,
                        output=lognormal(mean=280, sigma=0.4, least=40, most=1000),
                    ),
                ),
                calls=constant(4),
                shared=True,
                hard_output=0.3,
            ),
            StageShape(
                name="revise",
                kinds=(
                    CallShape(
                        template_tokens=500,
                        schema=True,
                        question=question,
                        own=lognormal(mean=250, sigma=0.5, least=60, most=1500),
                        output=lognormal(mean=150, sigma=0.5, least=20, most=700),
                    ),
                ),
                like="candidate",
                each=0.3,
                rounds=tilted(least=1, most=4, mean=1.6),
                shared=True,
            ),
            StageShape(
                name="evaluate",
                kinds=(
                    CallShape(
                        template_tokens=300,
                        question=evenly(500, 1100),
                        output=lognormal(mean=60, sigma=0.5, least=10, most=300),
                    ),
                ),
            ),
        ),
    )
    return Mix(name="short", parts=(Part(weight=1, shape=shape, databases=((1.0, 1200),)),))


MIXES: Mapping[str, Callable[[], Mix]] = MappingProxyType(
    {
        "natural": cache(_natural),
        "stratified": cache(lambda: _logged("stratified", "trace1", "trace2", "trace3")),
        "financial": cache(lambda: _logged("financial", "financial")),
        "formula1": cache(lambda: _logged("formula1", "formula1")),
        "trace1": cache(lambda: _logged("trace1", "trace1")),
        "trace2": cache(lambda: _logged("trace2", "trace2")),
        "trace3": cache(lambda: _logged("trace3", "trace3")),
        "modern": cache(_modern),
        "short": cache(_short),
    }
)
"""What makes each mix, by its name."""
