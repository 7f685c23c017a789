"""A workload: a mix of queries about some databases, from some tenants, arriving by some process.

The same seed gives the same queries whatever the arrivals and whatever is done with them, so that policies, rates
and bursts are compared on equal work. Streaming: a million calls need no more memory than ten.
"""

import heapq
from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice, takewhile
from random import Random

from hexflow_simulator.arrivals import Arrivals
from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.databases import choice, zipf
from hexflow_simulator.mix import Mix
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.shape import maker

SLO_FACTOR = 5.0
"""A deadline is so many times the SLO base, unless said otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Name who asks, how often, and how much time they leave."""

    name: str = ""
    share: float = 1.0
    """Weight among the tenants."""
    scale: float = 1.0
    """What the SLO is multiplied by."""


ONE_TENANT = (Tenant(),)
THREE_CLASSES = (
    Tenant(name="hurried", share=0.3, scale=0.6),
    Tenant(name="usual", share=0.5, scale=1.0),
    Tenant(name="patient", share=0.2, scale=2.0),
)
"""SLO classes of 0.6, 1 and 2 times the usual deadline for 30, 50 and 20 % of the queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Describe what arrives."""

    mix: Mix
    arrivals: Arrivals
    model: str
    databases: int | None = None
    """How many, asked by Zipf's law; None for those of the mix itself."""
    tenants: tuple[Tenant, ...] = ONE_TENANT
    base_seconds: float | None = None
    """SLO base (``slo.py``); None leaves the queries without a deadline."""
    slo_factor: float = SLO_FACTOR
    name: str = ""
    """The workflow's name and the head of every id; empty for the mix's."""
    prefixes: bool = True
    """Whether prompts begin alike; without, each is new from its first token."""
    pools: frozenset[str] | None = None

    def queries(
        self, seed: int | str, *, count: int | None = None, seconds: float | None = None
    ) -> Iterator[SimulatedQuery]:
        """Yield the queries of a seed in the order they arrive: ``count`` of them, or for some seconds.

        Endless where neither is given (and the arrivals are).
        """
        found = self._endless(seed)
        if seconds is not None:
            found = takewhile(lambda query: query.arrival < seconds, found)
        return found if count is None else islice(found, count)

    def _endless(self, seed: int | str) -> Iterator[SimulatedQuery]:
        name = self.name or self.mix.name
        # not for secrets: the same seed must give the same queries everywhere
        content = Random(f"{name}/{seed}/content")  # noqa: S311
        times = self.arrivals.times(Random(f"{name}/{seed}/arrivals"))  # noqa: S311
        parts = self.mix.parts
        makers = [maker(part.shape, workflow=name, prefixes=self.prefixes) for part in parts]
        if self.databases is None:
            choices = [choice(part.databases, name=f"{part.shape.name}-") for part in parts]
        else:
            shared = zipf(self.databases, mean_tokens=self.mix.schema_tokens, name=self.mix.name)
            choices = [choice(shared, name="db-")] * len(parts)
        weights = list(accumulate(part.weight for part in parts))
        shares = list(accumulate(tenant.share for tenant in self.tenants))
        if not shares or shares[-1] <= 0:
            raise InvalidWorkload("a workload needs a tenant with a share above zero")
        bases = [self.base_seconds and self.base_seconds * tenant.scale for tenant in self.tenants]
        last_part, last_tenant = len(parts) - 1, len(shares) - 1
        for number, arrival in enumerate(times):
            part = min(last_part, bisect(weights, content.random() * weights[-1]))
            who = min(last_tenant, bisect(shares, content.random() * shares[-1]))
            query_id = f"{name}-{number}"
            base = bases[who]
            yield SimulatedQuery(
                query_id=query_id,
                arrival=arrival,
                stages=makers[part](content, choices[part](content), query_id),
                model=self.model,
                workflow=name,
                tenant=self.tenants[who].name,
                pools=self.pools,
                slo_seconds=None if base is None else self.slo_factor * base,
                base_seconds=base,
            )


def merged(*streams: Iterable[SimulatedQuery]) -> Iterator[SimulatedQuery]:
    """Yield the queries of several workloads in the order they arrive; their names must differ."""
    return heapq.merge(*streams, key=lambda query: query.arrival)
