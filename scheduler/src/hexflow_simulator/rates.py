"""Sustainable rates over scenarios: how many queries a second each policy takes while enough are in time.

Each step of a bisection is a trial like any other, at the load that the rate is; so the ledger keeps it, and
work that was stopped goes on where it was.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from statistics import median

from hexflow_simulator.bounds import fluid_rate
from hexflow_simulator.capacity import TOLERANCE, sustainable_rate
from hexflow_simulator.comparison import Settings
from hexflow_simulator.grid import OURS, Claim, is_unequal
from hexflow_simulator.ledger import Ledger
from hexflow_simulator.measure import Spread, spread
from hexflow_simulator.scenario import scenario_named
from hexflow_simulator.trial import Cell, Trial, TrialResult, run_trial

PLAIN = "RoundRobin"
RATE_SEEDS = (21, 22, 23)
SCALE = 3.0
"""SLO bases within which a query is in time."""
SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """Hold the rates of a scenario, queries a second."""

    scenario: str
    of: Mapping[str, Spread]
    """By policy, over the seeds."""
    best_over: float | None
    """Ours over the best rival's, the median of the seeds; None where no rival was run."""
    plain_over: float | None
    """Ours over round robin's."""
    fluid: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTable:
    """Hold the rates of all scenarios that are complete."""

    ours: str
    rows: tuple[RateRow, ...]
    seeds: int
    plain: str = PLAIN
    scale: float = SCALE
    share: float = SHARE
    tolerance: float = TOLERANCE
    claims: tuple[Claim, ...] = field(default=())

    @property
    def policies(self) -> list[str]:
        """All policies of any row, ours first."""
        return list(dict.fromkeys([self.ours, self.plain, *(name for row in self.rows for name in row.of)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quest:
    """Name a rate that is looked for."""

    scenario: str
    policy: str
    parameters: tuple[tuple[str, float], ...]
    seed: int
    count: int | None = None

    def trial(self, load: float) -> Trial:
        """Return the trial that says whether a load holds."""
        cell = Cell(scenario=self.scenario, load=float(f"{load:.6g}"), count=self.count)
        return cell.trial(self.policy, self.seed, dict(self.parameters))


def find(
    quest: Quest, known: Mapping[str, TrialResult], run: Callable[[Trial], TrialResult] = run_trial
) -> tuple[float, list[TrialResult]]:
    """Return the load that is sustained (0 if none is), and the results that were not ``known`` by their key."""
    made: dict[str, TrialResult] = {}

    def holds(load: float) -> bool:
        trial = quest.trial(load)
        found = known.get(trial.key) or made.get(trial.key)
        if found is None:
            found = made[trial.key] = run(trial)
        return found.figures.req95 <= SCALE

    return sustainable_rate(holds, guess=1.0) or 0.0, list(made.values())


def found_before(quests: Iterable[Quest], known: Mapping[str, TrialResult]) -> dict[Quest, float]:
    """Return the loads of those quests whose every step is known."""

    def missing(trial: Trial) -> TrialResult:
        raise KeyError(trial.key)

    found: dict[Quest, float] = {}
    for quest in quests:
        with suppress(KeyError):
            found[quest], _ = find(quest, known, missing)
    return found


def run_quests(
    quests: Iterable[Quest],
    ledger: Ledger,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[Quest, float]:
    """Return the load that each quest finds; what is run on the way is kept in the ledger."""
    wanted = list(dict.fromkeys(quests))
    found: dict[Quest, float] = {}

    def note(quest: Quest, load: float, results: Iterable[TrialResult]) -> None:
        found[quest] = load
        for result in results:
            ledger.add(result)
        if progress is not None:
            progress(len(found), len(wanted))

    if workers == 1:
        for quest in wanted:
            note(quest, *find(quest, ledger.by_key))
        return found
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        running = {pool.submit(find, quest, _known(quest, ledger)): quest for quest in wanted}
        try:
            for future in as_completed(running):
                note(running[future], *future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def quests_of(
    scenario: str, policies: Mapping[str, Settings], seeds: Sequence[int], count: int | None = None
) -> list[Quest]:
    """Return what is looked for in a scenario."""
    return [
        Quest(
            scenario=scenario,
            policy=policy,
            parameters=tuple(sorted(settings.items())),
            seed=seed,
            count=count,
        )
        for seed in seeds
        for policy, settings in policies.items()
    ]


def rate_table(
    found: Mapping[Quest, float], *, ours: str = OURS, seeds: Sequence[int] = RATE_SEEDS
) -> RateTable:
    """Return the table of what was found, scenario by scenario, with what is claimed of it."""
    rows = tuple(
        row
        for scenario in dict.fromkeys(quest.scenario for quest in found)
        if (row := _row(scenario, found, ours, seeds)) is not None
    )
    best = [row.best_over for row in rows if row.best_over is not None]
    plain = [row.plain_over for row in rows if row.plain_over is not None and is_unequal(row.scenario)]
    stated = []
    if best:
        text = f"{ours}'s rate over the best baseline's, median of all scenarios"
        stated.append(Claim(text=text, wanted=1.15, found=median(best), cells=len(best)))
    if plain:
        text = f"{ours}'s rate over {PLAIN}'s, least of unequal fleets"
        stated.append(Claim(text=text, wanted=2.5, found=min(plain), cells=len(plain)))
    return RateTable(ours=ours, rows=rows, seeds=len(seeds), claims=tuple(stated))


def _row(scenario: str, found: Mapping[Quest, float], ours: str, seeds: Sequence[int]) -> RateRow | None:
    source = scenario_named(scenario)
    loads: dict[str, dict[int, float]] = {}
    count: int | None = None
    for quest, load in found.items():
        if quest.scenario == scenario:
            loads.setdefault(quest.policy, {})[quest.seed] = load
            count = quest.count
    complete = {policy: [by[seed] for seed in seeds] for policy, by in loads.items() if {*seeds} <= by.keys()}
    if ours not in complete:
        return None
    mine = complete[ours]
    over = {policy: _over(mine, theirs) for policy, theirs in complete.items() if policy != ours}
    sample = list(source.queries(seeds[0], load=1.0, count=min(200, count or source.count)))
    return RateRow(
        scenario=scenario,
        of={policy: spread([source.rate * load for load in theirs]) for policy, theirs in complete.items()},
        best_over=min(over.values()) if over else None,
        plain_over=over.get(PLAIN),
        fluid=fluid_rate(sample, source.fleet),
    )


def _over(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return median(a / b if b else float("inf") for a, b in zip(ours, theirs, strict=True))


def _known(quest: Quest, ledger: Ledger) -> dict[str, TrialResult]:
    """Return the results that bear on a quest: all of the ledger would be a lot to send."""
    return {
        key: result
        for key, result in ledger.by_key.items()
        if (result.trial.scenario, result.trial.policy, result.trial.seed)
        == (quest.scenario, quest.policy, quest.seed)
    }
