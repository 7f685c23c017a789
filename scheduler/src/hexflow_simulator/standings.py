"""Standings: how the policies of a contest did, by medians over the seeds, and whether the first is really ahead.

Pure functions of the runs' results; whoever stopped early has fewer of them, and only seeds that all have are compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan

from hexflow_simulator.contest import Bound, Entry, RunResult, Spent
from hexflow_simulator.measure import Figures, Spread, paired_ratios, spread

NOISE = 0.01
"""Share within which two policies count as equal on a seed."""


class Measure(StrEnum):
    """Say by what the best is picked."""

    P50 = "P50"
    P95 = "P95"
    P99 = "P99"
    REQ95 = "Req95"
    ATTAINMENT = "Attainment"

    def of(self, figures: Figures) -> float:
        """Return its value."""
        values = {
            Measure.P50: figures.p50,
            Measure.P95: figures.p95,
            Measure.P99: figures.p99,
            Measure.REQ95: figures.req95,
            Measure.ATTAINMENT: figures.attainment,
        }
        return values[self]

    @property
    def words(self) -> str:
        """What it is, for people."""
        return {
            Measure.P50: "P50 (s)",
            Measure.P95: "P95 (s)",
            Measure.P99: "P99 (s)",
            Measure.REQ95: "Req95 (SLO bases)",
            Measure.ATTAINMENT: "share in time",
        }[self]


SHOWN = (Measure.P50, Measure.P95, Measure.P99, Measure.ATTAINMENT, Measure.REQ95)
"""What is shown of each policy, in that order."""
BOUND = "clairvoyant bound"
"""What the bound is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Say how a policy did. Medians and ranges over its seeds."""

    entry: Entry
    runs: tuple[RunResult, ...]
    """At pace 1, by seed."""
    paced: tuple[RunResult, ...]
    """Of the first seed at all paces, by pace."""
    p50: Spread
    p95: Spread
    p99: Spread
    attainment: Spread
    req95: Spread
    behind: Spread
    """By how much it is behind the best, seed by seed: a ratio (1 = equal), of attainment a difference."""

    @property
    def label(self) -> str:
        """What it is called."""
        return self.entry.label

    def value(self, measure: Measure) -> Spread:
        """Return the spread of a measure."""
        return {
            Measure.P50: self.p50,
            Measure.P95: self.p95,
            Measure.P99: self.p99,
            Measure.REQ95: self.req95,
            Measure.ATTAINMENT: self.attainment,
        }[measure]

    @property
    def by_instance(self) -> Mapping[str, Spent]:
        """Where calls were served, over all seeds."""
        return _summed([run.by_instance for run in self.runs])

    @property
    def by_stage(self) -> Mapping[str, Spent]:
        """The same by stage."""
        return _summed([run.by_stage for run in self.runs])

    @property
    def spent(self) -> Spent:
        """The same in all."""
        return _sum(self.by_stage.values())

    @property
    def calls_per_query(self) -> float:
        """Calls that were released for a query, retries not counted."""
        return sum(run.calls for run in self.runs) / max(1, sum(run.queries for run in self.runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """Say how all did, the best first."""

    measure: Measure
    seeds: tuple[int, ...]
    """On which they are compared."""
    rows: tuple[Standing, ...]
    bounds: tuple[Bound, ...]
    """Of these seeds."""
    complete: bool
    """Whether every run that was wanted is in it."""

    @property
    def best(self) -> Standing:
        """The first."""
        return self.rows[0]

    @property
    def equals(self) -> tuple[Standing, ...]:
        """Those that are not behind the best on every seed by more than noise: nobody can tell them from it."""
        return tuple(row for row in self.rows[1:] if not _is_behind(row.behind, self.measure))


def standings(
    results: Sequence[RunResult],
    entries: Sequence[Entry],
    *,
    measure: Measure = Measure.P95,
    bounds: Mapping[int, Bound] | None = None,
    complete: bool = True,
) -> Standings:
    """Order the policies that have a result for every seed that counts; raises ValueError where there are none.

    The seeds that count are those of the entry with the most of them; an entry that lacks one is left out.
    """
    found: dict[Entry, dict[int, RunResult]] = {entry: {} for entry in entries}
    paced: dict[Entry, dict[float, RunResult]] = {entry: {} for entry in entries}
    first_seed = min((result.run.seed for result in results), default=None)
    for result in results:  # in the order in which they ended
        if result.run.pace == 1.0:
            found[result.run.entry][result.run.seed] = result
        if result.run.seed == first_seed:
            paced[result.run.entry][result.run.pace] = result
    all_have = [seed for seed in _seeds(results) if all(seed in runs for runs in found.values())]
    seeds = all_have or _seeds(results)[:1]
    present = [entry for entry, runs in found.items() if all(seed in runs for seed in seeds)]
    if not seeds or not present:
        raise ValueError("no run has ended yet")
    figures = {entry: [found[entry][seed].figures for seed in seeds] for entry in present}
    values = {entry: [measure.of(each) for each in figures[entry]] for entry in present}
    ordered = sorted(present, key=lambda entry: _key(spread(values[entry]).median, measure))
    first = values[ordered[0]]
    return Standings(
        measure=measure,
        seeds=tuple(seeds),
        rows=tuple(
            Standing(
                entry=entry,
                runs=tuple(found[entry][seed] for seed in seeds),
                paced=tuple(result for _, result in sorted(paced[entry].items())),
                p50=spread([each.p50 for each in figures[entry]]),
                p95=spread([each.p95 for each in figures[entry]]),
                p99=spread([each.p99 for each in figures[entry]]),
                attainment=spread([each.attainment for each in figures[entry]]),
                req95=spread([each.req95 for each in figures[entry]]),
                behind=spread(_behind(values[entry], first, measure)),
            )
            for entry in ordered
        ),
        bounds=tuple((bounds or {})[seed] for seed in seeds if seed in (bounds or {})),
        complete=complete,
    )


def _seeds(results: Sequence[RunResult]) -> list[int]:
    return list(dict.fromkeys(sorted(result.run.seed for result in results if result.run.pace == 1.0)))


def _key(value: float, measure: Measure) -> float:
    if isnan(value):
        return float("inf")
    return -value if measure is Measure.ATTAINMENT else value


def _behind(values: Sequence[float], first: Sequence[float], measure: Measure) -> list[float]:
    if measure is Measure.ATTAINMENT:
        return [best - value for value, best in zip(values, first, strict=True)]
    return [1.0 if isnan(ratio) else ratio for ratio in paired_ratios(values, first)]


def _is_behind(behind: Spread, measure: Measure) -> bool:
    return behind.low > (NOISE if measure is Measure.ATTAINMENT else 1 + NOISE)


def _summed(parts: Sequence[Mapping[str, Spent]]) -> dict[str, Spent]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: _sum([part[name] for part in parts if name in part]) for name in names}


def _sum(parts: Iterable[Spent]) -> Spent:
    each = tuple(parts)
    return Spent(
        calls=sum(part.calls for part in each),
        waiting=sum(part.waiting for part in each),
        prefill=sum(part.prefill for part in each),
        decode=sum(part.decode for part in each),
        prompt_tokens=sum(part.prompt_tokens for part in each),
        cached_tokens=sum(part.cached_tokens for part in each),
        output_tokens=sum(part.output_tokens for part in each),
    )
