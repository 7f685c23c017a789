# ruff: noqa: T201  It is run by hand, and what it prints is its result.
"""Where HexGenFlow's default alpha and beta come from: a grid over fleets, loads and settings.

Prints, for each setting, P50 and P95 on each fleet and rate, and P95 over that of the first setting on the same
arrivals; ``docs/explanation/scheduling.md`` has the flags of its table. For one's own traffic: ``hexflow tune``.
"""

import argparse
from collections.abc import Iterator
from random import Random
from statistics import fmean, geometric_mean

from hexflow_api import builtin_profile
from hexflow_scheduler import Instance, Policy, PrefixBlock, Profile
from hexflow_simulator import (
    EngineOptions,
    EngineOrder,
    SimulatedCall,
    SimulatedInstance,
    SimulatedQuery,
    SimulatedStage,
    simulate,
)
from hexflow_simulator.measure import figures

MODEL = "Qwen/Qwen2.5-Coder-32B-Instruct"
FLEETS = {
    "demo": ("A100-80GB", "L40S", "A6000"),
    "hetero": ("A100-80GB", "A100-80GB", "A6000", "L40S"),
    "homo": ("A100-80GB", "A100-80GB", "A100-80GB"),
}
DATABASES = 10
DEADLINE_SECONDS = 120.0


def fleet_of(gpus: tuple[str, ...]) -> list[SimulatedInstance]:
    """Return instances of the model on GPUs, two of each or, where that is too small, four."""
    made = []
    for number, gpu in enumerate(gpus):
        found = builtin_profile(gpu, MODEL, 2) or builtin_profile(gpu, MODEL, 4)
        assert found is not None, gpu
        instance = Instance(
            instance_id=f"i{number}",
            pool="p",
            gpu_type=gpu,
            models=frozenset({MODEL}),
            profile=Profile(**found.coefficients()),
            takes_priority=True,
        )
        made.append(SimulatedInstance(instance=instance, options=EngineOptions(order=EngineOrder.PRIORITY)))
    return made


def a_query(random: Random, name: str, arrival: float) -> SimulatedQuery:
    """Draw a query as natural logs have them: four drafts, most of which need no correction."""
    number = min(int(random.paretovariate(0.8)), DATABASES)
    schema = Random(number).randrange(3000, 7000)

    def length(mean: float, spread: float = 0.45) -> int:
        return max(8, round(mean * random.lognormvariate(0, spread)))

    def call(stage: str, own: int, output: int, *then: SimulatedCall, plain: bool = False) -> SimulatedCall:
        template = PrefixBlock(key=stage, tokens=300)
        prefix = (template, PrefixBlock(key=f"{stage}/db{number}", tokens=schema))
        prompt = own if plain else schema + own
        return SimulatedCall(
            prompt_tokens=prompt,
            output_tokens=output,
            max_tokens=2000,
            prefix=(template,) if stage == "judge" else prefix,
            then=then,
        )

    def chain(rounds: int) -> SimulatedCall:
        then = (chain(rounds - 1),) if rounds > 1 else ()
        return call("fix", length(900), length(110), *then)

    fixes = tuple(chain(random.choice((1, 1, 2, 3))) for _ in range(4) if random.random() > 0.67)
    link = call("link", length(500), length(160), call("link", length(700), length(60)))
    drafts = tuple(call("draft", length(2500), length(560)) for _ in range(4))
    last = call("judge", length(1500), length(60), plain=True)
    judge = call("judge", length(2500), length(250), last, plain=True)
    stages = {"link": (link,), "draft": drafts, "fix": fixes, "judge": (judge,)}
    return SimulatedQuery(
        query_id=name,
        arrival=arrival,
        model=MODEL,
        workflow="w",
        slo_seconds=DEADLINE_SECONDS,
        stages=tuple(SimulatedStage(name=stage, calls=calls) for stage, calls in stages.items()),
    )


def queries_of(seed: int, *, count: int, rate: float) -> Iterator[SimulatedQuery]:
    """Draw queries whose arrivals are Poisson."""
    random, now = Random(seed), 0.0
    for number in range(count):
        now += random.expovariate(rate)
        yield a_query(random, f"q{number}", now)


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
            both = []
            for seed in range(given.seeds):
                queries = queries_of(seed, count=given.queries, rate=rate)
                found = figures(simulate(queries, fleet_of(FLEETS[fleet]), policy).queries)
                ratios.append(found.p95 / base.setdefault((fleet, rate, seed), found.p95))
                both.append(found)
            row.append(f"{fmean(of.p50 for of in both):7.1f}/{fmean(of.p95 for of in both):7.1f} ")
        print(name.ljust(24), *row, f"{geometric_mean(ratios):8.3f}", flush=True)


if __name__ == "__main__":
    main()
