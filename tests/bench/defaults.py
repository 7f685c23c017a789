# ruff: noqa: T201  It is run by hand, and what it prints is its result.
"""Where HexGenFlow's default alpha and beta come from: a grid over fleets, loads and settings.

Takes some minutes and prints, for each setting, P95 over that of the first one on the same arrivals;
``docs/explanation/scheduling.md`` has the flags of its table. The simulator's own workloads and tuner replace
it when they are there.
"""

import argparse
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from statistics import geometric_mean, quantiles

from hexflow_api import builtin_profile
from hexflow_scheduler import (
    Call,
    Decision,
    End,
    Estimates,
    Instance,
    Kernel,
    Policy,
    PrefixBlock,
    Profile,
    Progress,
    Send,
    StageTemplate,
    Usage,
    WorkflowTemplate,
)
from hexflow_simulator import Engine, EngineOptions, EngineOrder, EngineRequest

MODEL = "Qwen/Qwen2.5-Coder-32B-Instruct"
FLEETS = {
    "demo": ("A100-80GB", "L40S", "A6000"),
    "hetero": ("A100-80GB", "A100-80GB", "A6000", "L40S"),
    "homo": ("A100-80GB", "A100-80GB", "A100-80GB"),
}
TEMPLATE = WorkflowTemplate(tuple(StageTemplate(name) for name in ("link", "draft", "fix", "judge")))


@dataclass(frozen=True, slots=True)
class Shape:
    """Hold the lengths of one call of a query, and what follows it in its chain."""

    prompt: int
    output: int
    then: tuple["Shape", ...] = ()


@dataclass(slots=True)
class Query:
    """Follow a query through the run."""

    arrival: float
    schema: PrefixBlock
    stages: dict[str, list[Shape]]
    progress: Progress
    open: int = 0
    latency: float | None = None


def a_query(random: Random, arrival: float, *, databases: int, deadline: float) -> Query:
    """Draw a query as natural logs have them: four drafts, most of which need no correction."""
    number = min(int(random.paretovariate(0.8)), databases)
    schema = Random(number).randrange(3000, 7000)

    def length(mean: float, spread: float = 0.45) -> int:
        return max(8, round(mean * random.lognormvariate(0, spread)))

    def chain(rounds: int) -> Shape:
        then = (chain(rounds - 1),) if rounds > 1 else ()
        return Shape(schema + length(900), length(110), then)

    fixes = [chain(random.choice((1, 1, 2, 3))) for _ in range(4) if random.random() > 0.67]
    return Query(
        arrival=arrival,
        schema=PrefixBlock(key=f"db{number}", tokens=schema),
        stages={
            "link": [Shape(schema + length(500), length(160), (Shape(schema + length(700), length(60)),))],
            "draft": [Shape(schema + length(2500), length(560)) for _ in range(4)],
            "fix": fixes,
            "judge": [Shape(length(2500), length(250), (Shape(length(1500), length(60)),))],
        },
        progress=Progress(TEMPLATE, arrival, arrival + deadline),
    )


def prefix_of(query: Query, stage: str) -> tuple[PrefixBlock, ...]:
    """Return the blocks that a stage's prompts begin with: its template, then the schema where it has one."""
    template = PrefixBlock(key=stage, tokens=300)
    schema = PrefixBlock(key=f"{stage}/{query.schema.key}", tokens=query.schema.tokens)
    return (template,) if stage == "judge" else (template, schema)


@dataclass(slots=True)
class Run:
    """Drive one kernel and one engine for each instance through the arrivals of a seed."""

    kernel: Kernel
    profiles: list[Profile]
    queries: list[Query]
    events: list[tuple[float, int, object]] = field(default_factory=list)
    engines: dict[str, Engine] = field(default_factory=dict)
    shapes: dict[str, tuple[Query, str, Shape, int]] = field(default_factory=dict)
    serial: Iterator[int] = field(default_factory=count)

    def latencies(self) -> list[float]:
        """Return the latency of every query, in the order they arrived."""
        for number, profile in enumerate(self.profiles):
            name = f"i{number}"
            self.engines[name] = Engine(profile, EngineOptions(order=EngineOrder.PRIORITY))
            self._apply(
                0.0,
                self.kernel.instance(
                    0.0,
                    Instance(
                        instance_id=name,
                        pool="p",
                        gpu_type="",
                        models=frozenset({MODEL}),
                        profile=profile,
                        takes_priority=True,
                    ),
                ),
            )
        for query in self.queries:
            self._at(query.arrival, query)
        while self.events:
            now, _, what = heapq.heappop(self.events)
            if isinstance(what, Query):
                self._advance(now, what)
            else:
                self._collect(now, str(what))
        return [query.latency for query in self.queries if query.latency is not None]

    def _at(self, when: float, what: object) -> None:
        heapq.heappush(self.events, (when, next(self.serial), what))

    def _collect(self, now: float, name: str) -> None:
        for done in self.engines[name].advance(now):
            query, stage, shape, rank = self.shapes.pop(done.request_id)
            usage = Usage(
                prompt_tokens=shape.prompt,
                output_tokens=done.output_tokens,
                cached_tokens=done.cached_tokens,
                first_token_seconds=done.first_token - done.submitted,
            )
            self._apply(now, self.kernel.finished(now, done.request_id, usage))
            query.open -= 1
            if shape.then:
                self._release(now, query, stage, list(shape.then), rank + 1)
            elif query.open == 0:
                query.progress.finish(now, stage)
                self._advance(now, query)
        self._watch(now, name)

    def _watch(self, now: float, name: str) -> None:
        event = self.engines[name].next_event()
        if event is not None:
            self._at(max(now, event), name)

    def _advance(self, now: float, query: Query) -> None:
        for stage in query.progress.ready():
            if query.stages[stage]:
                query.progress.start(now, stage)
                self._release(now, query, stage, query.stages[stage], 0)
            else:
                query.progress.skip(now, stage)
                self._advance(now, query)
        if query.progress.done and query.latency is None:
            query.latency = now - query.arrival

    def _release(self, now: float, query: Query, stage: str, shapes: list[Shape], rank: int) -> None:
        costs = {s.name: self.kernel.stage_seconds("w", s.name, MODEL) for s in TEMPLATE.stages}
        calls = []
        for shape in shapes:
            call_id = str(next(self.serial))
            self.shapes[call_id] = (query, stage, shape, rank)
            calls.append(
                Call(
                    call_id=call_id,
                    query_id=str(id(query)),
                    workflow="w",
                    stage=stage,
                    model=MODEL,
                    prompt_tokens=shape.prompt,
                    max_tokens=2000,
                    prefix=prefix_of(query, stage),
                    query_arrival=query.arrival,
                    deadline=query.progress.deadline,
                    budget_seconds=query.progress.budget(now, stage, costs),
                    round=rank,
                )
            )
        query.open += len(calls)
        self._apply(now, self.kernel.arrive(now, calls))

    def _apply(self, now: float, decisions: tuple[Decision, ...]) -> None:
        for decision in decisions:
            match decision:
                case Send():
                    query, stage, shape, _ = self.shapes[decision.call_id]
                    self.engines[decision.instance_id].submit(
                        now,
                        EngineRequest(
                            request_id=decision.call_id,
                            prompt_tokens=shape.prompt,
                            output_tokens=shape.output,
                            prefix=prefix_of(query, stage),
                            priority=decision.priority or 0,
                        ),
                    )
                    self._watch(now, decision.instance_id)
                case End():
                    assert decision.outcome.value == "Finished", decision


def p50_p95(policy: Policy, fleet: str, rate: float, seed: int, queries: int) -> tuple[float, float]:
    """Return P50 and P95 seconds of a policy on a fleet at a rate."""
    random = Random(seed)
    profiles = []
    for gpu in FLEETS[fleet]:
        found = builtin_profile(gpu, MODEL, 2) or builtin_profile(gpu, MODEL, 4)
        assert found is not None, gpu
        profiles.append(Profile(**found.coefficients()))
    now, arrivals = 0.0, []
    for _ in range(queries):
        now += random.expovariate(rate)
        arrivals.append(a_query(random, now, databases=10, deadline=120.0))
    run = Run(Kernel(policy, Estimates()), profiles, arrivals)
    latencies = run.latencies()[queries // 10 :]
    cuts = quantiles(latencies, n=100)
    return cuts[49], cuts[94]


def main() -> None:
    """Print the grid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--fleets", nargs="*", default=[*FLEETS])
    parser.add_argument("--rates", nargs="*", type=float, default=[0.2, 0.4, 0.6])
    parser.add_argument("--policies", nargs="*", default=["RoundRobin", "LeastOutstanding"])
    parser.add_argument("--alphas", nargs="*", type=float, default=[0.1, 0.3, 0.5, 0.7, 0.9])
    parser.add_argument("--betas", nargs="*", type=float, default=[1.0])
    given = parser.parse_args()
    policies = {name: Policy.named(name) for name in given.policies}
    for alpha in given.alphas:
        for beta in given.betas:
            policies[f"alpha {alpha} beta {beta}"] = Policy.named("HexGenFlow", alpha=alpha, beta=beta)
    cells = [(fleet, rate) for fleet in given.fleets for rate in given.rates]
    base: dict[tuple[str, float, int], float] = {}
    print(" " * 24, *(f"{fleet}@{rate}".rjust(16) for fleet, rate in cells), "     P95/first")
    for name, policy in policies.items():
        row, ratios = [], []
        for fleet, rate in cells:
            both = [p50_p95(policy, fleet, rate, seed, given.queries) for seed in range(given.seeds)]
            for seed, (_, p95) in enumerate(both):
                ratios.append(p95 / base.setdefault((fleet, rate, seed), p95))
            p50 = sum(p for p, _ in both) / len(both)
            p95 = sum(p for _, p in both) / len(both)
            row.append(f"{p50:7.1f}/{p95:7.1f} ")
        print(name.ljust(24), *row, f"{geometric_mean(ratios):8.3f}", flush=True)


if __name__ == "__main__":
    main()
