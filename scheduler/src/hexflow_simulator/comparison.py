"""A comparison of one policy with its rivals, cell by cell: every rival at its best.

A rival with parameters is tuned in each cell on seeds of its own, and what is compared are other seeds. The
best rival of a cell is picked afterwards, which favours the rivals. Pure functions of the ledger's results.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from hexflow_simulator.measure import Figures, Spread, paired_ratios, spread
from hexflow_simulator.trial import CLAIRVOYANT, Cell, Trial, TrialResult

Settings = Mapping[str, float]
"""Values of a policy's parameters."""
Knobs = Mapping[str, Sequence[Settings]]
"""Of each policy the settings that are tried for it; one that is not there has its defaults alone."""
Results = Mapping[str, TrialResult]
"""Results by the key of their trial."""


def settings_of(policy: str, knobs: Knobs) -> Sequence[Settings]:
    """Return what is tried for a policy: its knobs, or its defaults alone."""
    return knobs.get(policy) or ({},)


def tuning_trials(cell: Cell, policies: Iterable[str], knobs: Knobs, seeds: Sequence[int]) -> list[Trial]:
    """Return the trials by which every policy that has a choice is tuned in a cell."""
    return [
        cell.trial(policy, seed, settings)
        for seed in seeds
        for policy in policies
        if len(settings_of(policy, knobs)) > 1
        for settings in settings_of(policy, knobs)
    ]


def best_settings(cell: Cell, policy: str, knobs: Knobs, seeds: Sequence[int], results: Results) -> Settings:
    """Return the settings whose median P95 over the tuning seeds is the least; of equals the first."""
    tried = settings_of(policy, knobs)
    if len(tried) == 1:
        return tried[0]
    return min(
        tried, key=lambda settings: median(_p95(cell, policy, seed, settings, results) for seed in seeds)
    )


def measuring_trials(cell: Cell, chosen: Mapping[str, Settings], seeds: Sequence[int]) -> list[Trial]:
    """Return the trials that are compared in a cell: each policy as it was tuned."""
    return [cell.trial(policy, seed, settings) for seed in seeds for policy, settings in chosen.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Say how a policy did in a cell: medians over the seeds, with ranges."""

    policy: str
    settings: Settings
    p50: Spread
    p95: Spread
    req95: Spread
    attainment: Spread
    p95_over_ours: Spread
    """Its P95 over ours, seed by seed: above 1 where ours is better."""
    p50_over_ours: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Hold the clairvoyant critical paths of a cell, and how far above them we are."""

    p50: Spread
    p95: Spread
    p95_ours_over: Spread
    """Our P95 over it, seed by seed: never below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellComparison:
    """Compare all policies in a cell."""

    cell: Cell
    ours: Standing
    rivals: tuple[Standing, ...]
    """The best first, by median P95."""
    bound: Bound | None = None
    """What no policy can beat; None where it was not reckoned."""

    @property
    def best(self) -> Standing:
        """The best rival."""
        return self.rivals[0]

    def rival(self, policy: str) -> Standing | None:
        """Return a rival by name."""
        return next((rival for rival in self.rivals if rival.policy == policy), None)


def compare(
    cell: Cell, ours: str, chosen: Mapping[str, Settings], seeds: Sequence[int], results: Results
) -> CellComparison:
    """Compare ``ours`` with every other policy of ``chosen``; raises KeyError where a result is missing."""
    found = {
        policy: [results[cell.trial(policy, seed, settings).key].figures for seed in seeds]
        for policy, settings in chosen.items()
    }
    mine = found[ours]
    standings = {
        policy: Standing(
            policy=policy,
            settings=chosen[policy],
            p50=spread([each.p50 for each in figures]),
            p95=spread([each.p95 for each in figures]),
            req95=spread([each.req95 for each in figures]),
            attainment=spread([each.attainment for each in figures]),
            p95_over_ours=spread(paired_ratios([each.p95 for each in figures], [each.p95 for each in mine])),
            p50_over_ours=spread(paired_ratios([each.p50 for each in figures], [each.p50 for each in mine])),
        )
        for policy, figures in found.items()
    }
    rivals = sorted(
        (standing for policy, standing in standings.items() if policy != ours),
        key=lambda standing: (standing.p95.median, standing.policy),
    )
    return CellComparison(
        cell=cell, ours=standings[ours], rivals=tuple(rivals), bound=_bound(cell, mine, seeds, results)
    )


def bounding_trials(cell: Cell, seeds: Sequence[int]) -> list[Trial]:
    """Return the trials that give a cell's bound."""
    return [cell.trial(CLAIRVOYANT, seed) for seed in seeds]


def _bound(cell: Cell, ours: Sequence[Figures], seeds: Sequence[int], results: Results) -> Bound | None:
    found = [results.get(trial.key) for trial in bounding_trials(cell, seeds)]
    bounds = [each.figures for each in found if each is not None]
    if len(bounds) < len(seeds):
        return None
    return Bound(
        p50=spread([each.p50 for each in bounds]),
        p95=spread([each.p95 for each in bounds]),
        p95_ours_over=spread(paired_ratios([each.p95 for each in ours], [each.p95 for each in bounds])),
    )


def _p95(cell: Cell, policy: str, seed: int, settings: Settings, results: Results) -> float:
    return results[cell.trial(policy, seed, settings).key].figures.p95
