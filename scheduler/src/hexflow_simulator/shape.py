"""The shape of a query: its stages, the calls of each, and how long they are.

A shape makes queries from random numbers; every length is drawn from a spread. A query has two traits of
its own: how hard it is (hard ones have longer drafts and more corrections) and how long its question is (with
its hints, it is part of several prompts). Knows no arrival and no model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from hexflow_scheduler import PrefixBlock
from hexflow_simulator.query import SimulatedCall, SimulatedStage
from hexflow_simulator.spread import BITS, NONE, ONE, SIZE, Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class CallShape:
    """Describe a kind of call. Lengths are tokens."""

    template_tokens: int
    """What every prompt of the kind begins with."""
    output: Spread
    schema: bool = False
    """Whether the schema of the database follows the template."""
    question: Spread = NONE
    """What follows of the query: its question, hints, candidates, the part of the schema chosen for it."""
    own: Spread = NONE
    """What no other call of the query shares: an error, one test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageShape:
    """Describe a stage."""

    name: str
    kinds: tuple[CallShape, ...]
    """Kind of the first call, of the second, and so on; the last one of all further calls."""
    calls: Spread = ONE
    """Calls released together; none of them skips the stage."""
    rounds: Spread = ONE
    """Calls of each chain: its first, and those that follow one another; none drops the chain."""
    each: float = 1.0
    """Share of the calls (chains) that are needed; each is decided alone."""
    unless_skipped: str = ""
    """An earlier stage without which this one is skipped, too."""
    like: str = ""
    """An earlier stage of as many calls; ``calls`` does not count then."""
    shared: bool = False
    """Whether several calls begin with the same question, so that it is worth a block in the cache."""
    hard_output: float = 0.0
    """Share of the draws of output that follow how hard the query is."""
    hard_rounds: float = 0.0
    """The same of the draws of rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """List the stages of a kind of query, in their order."""

    name: str
    stages: tuple[StageShape, ...]


@dataclass(frozen=True, slots=True)
class Database:
    """Name a database and the tokens of its schema in a prompt."""

    name: str
    schema_tokens: int


StageMaker = Callable[[Random, Database, str], tuple[SimulatedStage, ...]]


def maker(shape: QueryShape, *, workflow: str, prefixes: bool) -> StageMaker:
    """Return what makes the stages of a query from random numbers, a database and the query's id.

    ``workflow`` is the head of every prefix key; without ``prefixes`` no prompt begins like another.
    """
    stages = tuple(_Stage(stage, workflow=workflow, prefixes=prefixes) for stage in shape.stages)

    def make(random: Random, database: Database, query_id: str) -> tuple[SimulatedStage, ...]:
        bits = random.getrandbits
        hard, asked = bits(BITS), bits(BITS)
        counts: dict[str, int] = {}
        return tuple([stage.make(bits, database, query_id, hard, asked, counts) for stage in stages])

    return make


class _Stage:
    """A stage's shape with everything looked up that does not vary: this is the inner loop of a benchmark."""

    def __init__(self, stage: StageShape, *, workflow: str, prefixes: bool) -> None:
        self.name = stage.name
        self.calls = stage.calls.values
        self.rounds = stage.rounds.values
        self.each = round(stage.each * SIZE)
        self.unless_skipped, self.like = stage.unless_skipped, stage.like
        self.hard_output = round(stage.hard_output * SIZE)
        self.hard_rounds = round(stage.hard_rounds * SIZE)
        self.kinds = [_Kind(kind, f"{workflow}/{stage.name}/{n}") for n, kind in enumerate(stage.kinds)]
        self.prefixes, self.shared = prefixes, prefixes and stage.shared
        self.nothing = SimulatedStage(name=stage.name, calls=())

    def make(
        self,
        bits: Callable[[int], int],
        database: Database,
        query_id: str,
        hard: int,
        asked: int,
        counts: dict[str, int],
    ) -> SimulatedStage:
        name, follows = self.name, self.hard_output
        if self.like:
            number = counts[self.like]
        elif self.unless_skipped and not counts[self.unless_skipped]:
            number = 0
        else:
            number = self.calls[bits(BITS)]
        counts[name] = number
        if not number:
            return self.nothing
        calls: list[SimulatedCall] = []
        prompts: list[tuple[int, tuple[PrefixBlock, ...]]] = []
        for kind in self.kinds[:number]:
            start, prefix = kind.head(database)
            question = kind.question[asked]
            if not self.prefixes:
                prefix = ()
            elif self.shared and question:
                prefix = (*prefix, PrefixBlock(key=f"{kind.key}/{query_id}", tokens=question))
            prompts.append((start + question, prefix))
        last = len(prompts) - 1
        for place in range(number):
            if self.each < SIZE and bits(BITS) >= self.each:
                continue
            which = place if place < last else last
            own, output = self.kinds[which].own, self.kinds[which].output
            start, prefix = prompts[which]
            then: tuple[SimulatedCall, ...] = ()
            for _ in range(self.rounds[hard if bits(BITS) < self.hard_rounds else bits(BITS)]):
                then = (
                    SimulatedCall(
                        prompt_tokens=start + own[bits(BITS)],
                        output_tokens=output[hard if bits(BITS) < follows else bits(BITS)],
                        prefix=prefix,
                        then=then,
                    ),
                )
            calls += then
        if not calls:
            return self.nothing
        return SimulatedStage(name=name, calls=tuple(calls))


class _Kind:
    """A kind of call, with the leading blocks of its prompts by database."""

    def __init__(self, kind: CallShape, key: str) -> None:
        self.key = key
        self.output, self.own = kind.output.values, kind.own.values
        self.question = kind.question.values
        self._schema = kind.schema
        self._template = PrefixBlock(key=key, tokens=kind.template_tokens)
        self._heads: dict[str, tuple[int, tuple[PrefixBlock, ...]]] = {}

    def head(self, database: Database) -> tuple[int, tuple[PrefixBlock, ...]]:
        """Return the tokens of template and schema, and their blocks."""
        if not self._schema:
            return self._template.tokens, (self._template,)
        found = self._heads.get(database.name)
        if found is None:
            schema = PrefixBlock(key=f"{self.key}/{database.name}", tokens=database.schema_tokens)
            found = self._template.tokens + schema.tokens, (self._template, schema)
            self._heads[database.name] = found
        return found


def calls_of(stages: Sequence[SimulatedStage]) -> list[tuple[str, SimulatedCall]]:
    """Return every call of a query with the name of its stage, chains in their order."""
    found: list[tuple[str, SimulatedCall]] = []
    for stage in stages:
        waiting = list(reversed(stage.calls))
        while waiting:
            call = waiting.pop()
            found.append((stage.name, call))
            waiting += reversed(call.then)
    return found
