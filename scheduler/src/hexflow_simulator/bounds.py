"""Bounds: what no policy can beat, to be shown beside what one reaches.

The **clairvoyant critical path** of a query: each of its calls on the fastest instance for it, idle and with
its prefix in the cache, siblings not in each other's way. The **fluid rate**: the arrival rate at which the
instances' time is used up if calls are split over them as well as can be, in full batches, however late.
"Our rule with true lengths" is ``simulate(knowledge=Knowledge(true_lengths=True))``: no bound, but what better
estimates could give at most.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil, exp, inf

from hexflow_scheduler import Profile, StageTemplate, WorkflowTemplate
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.query import SimulatedCall, SimulatedQuery
from hexflow_simulator.request import EngineOptions
from hexflow_simulator.result import QueryResult

FULL_BATCH = 64
"""Calls that decode together in the fluid; more gains little with the profiles we know."""

STEEPEST = 7.0
"""By how many times the mean an instance counts as used above it at most: the one that is best for all calls of a large fleet
would else get so dear at once that prices never find back (and from 710 instances on no float would hold it)."""


def alone_seconds(call: SimulatedCall, profile: Profile, options: EngineOptions) -> float:
    """Return the seconds of a call on an idle engine that has its prefix in the cache, as the engine model has it."""
    prompt = call.prompt_tokens
    cached = _found(call, prompt - 1) if options.keep_prefixes else 0
    prefill_steps = ceil((prompt - cached) / options.step_tokens)
    decode_steps = call.output_tokens - 1
    # The first decode step attends to the prompt and one token, each later one to one more.
    context = decode_steps * (prompt + 1) + decode_steps * (decode_steps - 1) / 2
    return (
        options.overhead_seconds
        + prefill_steps * profile.t0
        + profile.prefill_seconds(prompt, cached_tokens=cached)
        + decode_steps * (profile.t0 + profile.t1)
        + profile.t2 * context
    )


def critical_path(query: SimulatedQuery, fleet: Sequence[SimulatedInstance]) -> float:
    """Return the clairvoyant seconds of a query; infinite where no instance serves it."""
    able = {
        (source.true_profile, source.options)
        for source in fleet
        if query.model in source.instance.models
        and (query.pools is None or source.instance.pool in query.pools)
    }

    def slowest(calls: Iterable[SimulatedCall]) -> float:
        return max(
            (
                min((alone_seconds(call, *on) for on in able), default=inf) + slowest(call.then)
                for call in calls
            ),
            default=0.0,
        )

    template = WorkflowTemplate(tuple(StageTemplate(stage.name, stage.after) for stage in query.stages))
    ends: dict[str, float] = {}
    for stage in query.stages:
        begins = max((ends[before] for before in template.predecessors[stage.name]), default=0.0)
        ends[stage.name] = begins + slowest(stage.calls)
    return max(ends.values())


def clairvoyant(
    queries: Iterable[SimulatedQuery], fleet: Sequence[SimulatedInstance]
) -> tuple[QueryResult, ...]:
    """Return what would become of queries if each took its critical path, for ``measure`` to make figures of."""
    return tuple(
        QueryResult(
            query_id=query.query_id,
            workflow=query.workflow,
            tenant=query.tenant,
            arrival=query.arrival,
            finished=query.arrival + critical_path(query, fleet),
            slo_seconds=query.slo_seconds,
            base_seconds=query.base_seconds,
            calls=0,
        )
        for query in queries
    )


def fluid_rate(
    queries: Sequence[SimulatedQuery],
    fleet: Sequence[SimulatedInstance],
    *,
    batch: int = FULL_BATCH,
    cold_share: float = 0.0,
    rounds: int = 400,
) -> float:
    """Return an arrival rate (queries a second) that no placement of such queries can pass.

    The least rate at which the instances' time is used up: a linear program, of which every set of prices
    of the instances' time gives an upper bound; ``rounds`` of weighing by use make it tight (within 1 %
    after some hundreds). ``cold_share`` of the shared prompt tokens are not in the cache. 0 where a call has
    no instance.
    """
    if not queries:
        raise ValueError("there is nothing to take the work of")
    kinds: dict[tuple[Profile, str, frozenset[str]], int] = {}
    for source in fleet:
        profile = source.true_profile
        shared = replace(profile, t0=profile.t0 / min(batch, profile.slots))
        key = (shared, source.instance.pool, source.instance.models)
        kinds[key] = kinds.get(key, 0) + 1
    counts = list(kinds.values())
    work: list[list[float]] = []
    for query in queries:
        able = [
            profile if query.model in models and (query.pools is None or pool in query.pools) else None
            for profile, pool, models in kinds
        ]
        for call in _calls(query):
            work.append([_cost(call, profile, cold_share) if profile else inf for profile in able])
    if any(min(costs) == inf for costs in work):
        return 0.0
    prices = [1.0 / sum(counts)] * len(counts)
    most = 0.0
    for number in range(rounds):
        used = [0.0] * len(counts)
        value = 0.0
        for costs in work:
            priced = [price * cost for price, cost in zip(prices, costs, strict=True)]
            least = min(priced)
            cheapest = priced.index(least)
            used[cheapest] += costs[cheapest]
            value += least
        most = max(most, value)
        # Time of which more is asked for gets dearer; in the end all instances are used alike.
        shares = [seconds / count for seconds, count in zip(used, counts, strict=True)]
        mean = sum(used) / sum(counts)
        pace = 1.0 / (1 + number / 4)
        prices = [
            price * exp(pace * min(STEEPEST, share / mean - 1))
            for price, share in zip(prices, shares, strict=True)
        ]
        total = sum(price * count for price, count in zip(prices, counts, strict=True))
        prices = [price / total for price in prices]
    return len(queries) / most


def _cost(call: SimulatedCall, profile: Profile, cold_share: float) -> float:
    cached = _found(call, call.prompt_tokens - 1) * (1 - cold_share)
    return profile.prefill_seconds(call.prompt_tokens, cached_tokens=cached) + profile.decode_seconds(
        call.prompt_tokens, call.output_tokens - 1
    )


def _found(call: SimulatedCall, limit: int) -> int:
    """Return the tokens of the whole blocks of a call's prefix that end within a limit, as a cache finds them."""
    tokens = 0
    for block in call.prefix:
        if tokens + block.tokens > limit:
            break
        tokens += block.tokens
    return tokens


def _calls(query: SimulatedQuery) -> Iterable[SimulatedCall]:
    waiting = [call for stage in query.stages for call in stage.calls]
    while waiting:
        call = waiting.pop()
        waiting.extend(call.then)
        yield call
