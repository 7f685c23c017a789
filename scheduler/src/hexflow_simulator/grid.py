"""The grid: one policy against every baseline, each tuned in every cell, over scenarios and loads.

What is run is decided here, trial by trial, and what is made of it: how the cells came out and the claims
that hold over all of them. Running, keeping and showing is others' business.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import ceil
from statistics import median

from hexflow_simulator.comparison import (
    CellComparison,
    Knobs,
    Results,
    Settings,
    best_settings,
    bounding_trials,
    compare,
    measuring_trials,
    settings_of,
    tuning_trials,
)
from hexflow_simulator.knobs import BASELINES, settings
from hexflow_simulator.scenario import SCENARIOS
from hexflow_simulator.trial import Cell, Trial
from hexflow_simulator.trials import interleaved

OURS = "LeastHarm"
LOADS = (0.4, 0.6, 0.8, 0.95, 1.1)
TUNING_SEEDS = (1, 2)
SEEDS = (11, 12, 13, 14, 15)
TUNING_SHARE = 0.5
"""Of the queries that are measured, enough for a trial by which a setting is chosen."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Describe a benchmark: cells, policies, seeds."""

    scenarios: Sequence[str] = tuple(SCENARIOS)
    loads: Sequence[float] = LOADS
    ours: str = OURS
    rivals: Sequence[str] = tuple(BASELINES.values())
    tuning_seeds: Sequence[int] = TUNING_SEEDS
    seeds: Sequence[int] = SEEDS
    count: int | None = None
    """Queries of a measured trial; None for the scenario's own number."""
    knobs: Knobs = field(default_factory=lambda: knobs_of(BASELINES.values()))

    @property
    def cells(self) -> list[Cell]:
        """All cells, scenario by scenario within a load: what is stopped early has whole loads."""
        return [
            Cell(scenario=scenario, load=load, count=self.count)
            for load, scenario in product(self.loads, self.scenarios)
        ]

    def tuning(self, cell: Cell) -> list[Trial]:
        """Return the trials that have to be there before a cell's rivals are tuned."""
        return interleaved(
            [
                tuning_trials(self._tuned_on(cell), [rival], self.knobs, self.tuning_seeds)
                for rival in self.rivals
            ]
        )

    def chosen(self, cell: Cell, results: Results) -> dict[str, Mapping[str, float]]:
        """Return every policy with its settings; raises KeyError where a tuning trial is missing."""
        tuned = {
            rival: best_settings(self._tuned_on(cell), rival, self.knobs, self.tuning_seeds, results)
            for rival in self.rivals
        }
        return {self.ours: {}, **tuned}

    def measuring(self, cell: Cell, results: Results) -> list[Trial]:
        """Return the trials that are compared in a cell, policies in turn."""
        chosen = self.chosen(cell, results)
        return [*measuring_trials(cell, chosen, self.seeds), *bounding_trials(cell, self.seeds)]

    @property
    def size(self) -> int:
        """How many trials there are in all."""
        tuned = sum(len(each) for each in map(self._settings, self.rivals) if len(each) > 1)
        measured = 1 + len(dict.fromkeys(self.rivals)) + 1
        return len(self.cells) * (tuned * len(self.tuning_seeds) + measured * len(self.seeds))

    def comparisons(self, results: Results) -> Iterator[CellComparison]:
        """Yield the cells that are complete."""
        for cell in self.cells:
            try:
                chosen = self.chosen(cell, results)
                yield compare(cell, self.ours, chosen, self.seeds, results)
            except KeyError:
                continue

    def _settings(self, rival: str) -> Sequence[Settings]:
        return settings_of(rival, self.knobs)

    def _tuned_on(self, cell: Cell) -> Cell:
        whole = cell.count or SCENARIOS[cell.scenario].count
        return Cell(scenario=cell.scenario, load=cell.load, count=ceil(whole * TUNING_SHARE))


def knobs_of(policies: Iterable[str]) -> Knobs:
    """Return what is tried of each policy, as settings that differ from the defaults."""
    return {policy: [dict(each.parameters) for each in settings(policy)] for policy in policies}


def is_unequal(scenario: str) -> bool:
    """Say whether a scenario's instances differ in speed."""
    return len({each.true_profile for each in SCENARIOS[scenario].fleet}) > 1


def gpu_types(scenario: str) -> int:
    """Return how many types of GPU a scenario's fleet has."""
    return len({each.instance.gpu_type for each in SCENARIOS[scenario].fleet})


def is_large(scenario: str) -> bool:
    """Say whether a scenario is one of a 70B model on three or more types of GPU, the H100 among them."""
    types = {each.instance.gpu_type for each in SCENARIOS[scenario].fleet}
    return len(types) >= 3 and "H100-SXM" in types and "70B" in SCENARIOS[scenario].title


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """State something that should hold over the grid, and what was found."""

    text: str
    wanted: float
    found: float
    cells: int
    """Over how many cells."""

    @property
    def holds(self) -> bool:
        """Whether what was found is at least what is wanted."""
        return self.found >= self.wanted


def claims(cells: Sequence[CellComparison], rivals: Sequence[str]) -> list[Claim]:
    """Return the claims for which there are cells, with what the cells say."""
    unequal = [each for each in cells if is_unequal(each.cell.scenario)]
    busy = [each for each in unequal if each.cell.load >= 0.8]
    large = [each for each in busy if is_large(each.cell.scenario)]
    full = [each for each in unequal if each.cell.load >= 0.95]
    stated: list[tuple[str, float, Callable[[list[float]], float], list[float]]] = [
        ("P95, worst cell: best baseline over ours", 1 / 1.03, min, _best(cells)),
        (
            "P50, worst cell: the same baseline over ours",
            1 / 1.05,
            min,
            [each.best.p50_over_ours.median for each in cells],
        ),
        ("P95, median of unequal fleets at load >= 0.8: best baseline over ours", 1.15, median, _best(busy)),
        (
            "P95, median of 70B on three or more GPU types, H100 among them, at load >= 0.8: best baseline over ours",
            1.3,
            median,
            _best(large),
        ),
        (
            "P95, least of unequal fleets at load >= 0.95: RoundRobin over ours",
            2.0,
            min,
            _of("RoundRobin", full),
        ),
        *(
            (f"P95, median of all cells: {rival} over ours", 1.2, median, _of(rival, cells))
            for rival in rivals
        ),
    ]
    return [
        Claim(text=text, wanted=wanted, found=fold(values), cells=len(values))
        for text, wanted, fold, values in stated
        if values
    ]


def _best(cells: Iterable[CellComparison]) -> list[float]:
    return [each.best.p95_over_ours.median for each in cells]


def _of(rival: str, cells: Iterable[CellComparison]) -> list[float]:
    found = (each.rival(rival) for each in cells)
    return [each.p95_over_ours.median for each in found if each is not None]
