"""`hexflow bench`: our policy against every baseline, each tuned in every cell; goes on where it was stopped."""

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from hexflow_cli.console import print_json, say, stderr, stdout
from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.outputpath import refuse_unwritable_file
from hexflow_cli.reporttable import show_report
from hexflow_scheduler import Policy, UnknownPolicy
from hexflow_simulator.benchmark import run_grid
from hexflow_simulator.comparison import CellComparison, Settings
from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.grid import Grid, claims
from hexflow_simulator.gridreport import grid_report, markdown, ratio, settings
from hexflow_simulator.knobs import BASELINES
from hexflow_simulator.ledger import Ledger, LedgerError, read_results
from hexflow_simulator.rates import PLAIN, Quest, RateTable, found_before, quests_of, rate_table, run_quests
from hexflow_simulator.report import Report
from hexflow_simulator.scenario import SCENARIOS, scenario_named
from hexflow_simulator.trial import TrialResult

Number = TypeVar("Number", int, float)

RATE_RIVALS = 3
"""Best baselines of a scenario whose sustainable rate is looked for besides round robin's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """Hold what the command line says."""

    scenarios: Sequence[str]
    loads: Sequence[float]
    ours: str
    rivals: Sequence[str]
    seeds: Sequence[int]
    tuning_seeds: Sequence[int]
    count: int | None
    workers: int | None
    results: Path
    report: Path | None
    html: Path | None
    rates: bool
    rate_seeds: Sequence[int]
    only_report: bool
    code: str | None
    as_json: bool


def bench(options: BenchOptions) -> int:
    """Run what is missing, then show it; raises CommandError."""
    grid = _grid(options)
    refuse_unwritable_file(options.html)
    code = options.code or _code()
    try:
        if options.only_report:
            if not options.results.exists():
                raise CommandError(
                    f"there is no {options.results}; run the benchmark first", code=ExitCode.USAGE
                )
            code, results = read_results(options.results)
            return _show(options, grid, code, results, rates=_rates_before(options, grid, results))
        with Ledger(options.results, code=code) as ledger:
            if stderr.is_terminal or not options.as_json:
                say(
                    Text(
                        f"{grid.size} trials of {len(grid.cells)} cells, results in {options.results}; ctrl-C stops, and the same command goes on."
                    )
                )
            try:
                _run(options, grid, ledger)
                rates = _rates(options, grid, ledger) if options.rates else None
            except KeyboardInterrupt:
                say(
                    Text(
                        f"Stopped; {options.results} has {len(ledger)} results. The same command goes on from there."
                    )
                )
                _write(options, grid, code, ledger.by_key, rates=None)
                if options.as_json:
                    print_json(_data(grid, [*grid.comparisons(ledger.by_key)], code=code, rates=None))
                return ExitCode.INTERRUPTED
            return _show(options, grid, code, ledger.by_key, rates=rates)
    except LedgerError as error:
        raise CommandError(str(error), code=ExitCode.USAGE, reason="ResultsUnusable") from error
    except BrokenProcessPool as error:
        raise CommandError(
            f"A process of the benchmark was killed, perhaps for memory; {options.results} keeps what was done by then. "
            "The same command goes on from there, with --workers 1 in the least memory.",
            code=ExitCode.ENVIRONMENT,
            reason="ProcessKilled",
        ) from error
    except OSError as error:
        raise CommandError(
            f"{error.filename or options.results} cannot be written ({error.strerror}).",
            code=ExitCode.ENVIRONMENT,
            reason="NotWritten",
        ) from error


def words(text: str) -> tuple[str, ...]:
    """Return what stands between commas."""
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)


def numbers(text: str, *, option: str, kind: Callable[[str], Number]) -> tuple[Number, ...]:
    """Return the numbers between commas; raises CommandError."""
    try:
        found = tuple(kind(word) for word in words(text))
    except ValueError:
        found = ()
    if not found or any(not 0 <= number < float("inf") for number in found):
        raise CommandError(
            f"{option} takes numbers with commas between, such as 1,2,3, not {text!r}",
            code=ExitCode.USAGE,
            reason="BadNumber",
        )
    return found


def _grid(options: BenchOptions) -> Grid:
    try:
        for scenario in options.scenarios:
            scenario_named(scenario)
        for policy in (options.ours, *options.rivals):
            Policy.named(policy)
    except (InvalidWorkload, UnknownPolicy) as error:
        raise CommandError(str(error), code=ExitCode.USAGE, reason="Unknown") from error
    if not all(0.01 <= load <= 100 for load in options.loads):
        raise CommandError(
            "--loads takes shares of a scenario's rate from 0.01 to 100",
            code=ExitCode.USAGE,
            reason="BadNumber",
        )
    rivals = [name for name in dict.fromkeys(options.rivals or BASELINES.values()) if name != options.ours]
    if not rivals:
        raise CommandError(
            f"{options.ours} has nobody to be compared with; name another policy with --rivals",
            code=ExitCode.USAGE,
            reason="NoRivals",
        )
    return Grid(
        scenarios=tuple(dict.fromkeys(options.scenarios)) or tuple(SCENARIOS),
        loads=options.loads,
        ours=options.ours,
        rivals=tuple(rivals),
        tuning_seeds=options.tuning_seeds,
        seeds=options.seeds,
        count=options.count,
    )


def _run(options: BenchOptions, grid: Grid, ledger: Ledger) -> None:
    with _bar("trials") as tell:
        for cell in run_grid(grid, ledger, workers=options.workers, progress=tell):
            stderr.print(_line(cell), soft_wrap=True)
            _write(options, grid, ledger.code, ledger.by_key, rates=None)


def _line(found: CellComparison) -> Text:
    ahead = found.best.p95_over_ours.median
    colour = "green" if ahead >= 1 else "yellow" if ahead >= 1 / 1.03 else "red"
    return Text.assemble(
        f"{found.cell.scenario:4} at {found.cell.load:<4g} P50 {found.ours.p50.median:7.1f} s, P95 {found.ours.p95.median:7.1f} s;"
        f" best rival {settings(found.best)}: ",
        (f"P95 {ratio(found.best.p95_over_ours)}", colour),
        f", P50 {ratio(found.best.p50_over_ours)}",
    )


def _quests(options: BenchOptions, grid: Grid, results: Mapping[str, TrialResult]) -> list[Quest]:
    chosen = rate_policies(grid, [*grid.comparisons(results)])
    return [
        quest
        for scenario, policies in chosen.items()
        for quest in quests_of(scenario, policies, options.rate_seeds, options.count)
    ]


def _rates(options: BenchOptions, grid: Grid, ledger: Ledger) -> RateTable:
    quests = _quests(options, grid, ledger.by_key)
    with _bar("rates") as tell:
        found = run_quests(quests, ledger, workers=options.workers, progress=tell)
    return rate_table(found, ours=grid.ours, seeds=options.rate_seeds)


def _rates_before(options: BenchOptions, grid: Grid, results: Mapping[str, TrialResult]) -> RateTable | None:
    found = found_before(_quests(options, grid, results), results)
    return rate_table(found, ours=grid.ours, seeds=options.rate_seeds) if found else None


def rate_policies(grid: Grid, cells: Sequence[CellComparison]) -> dict[str, dict[str, Settings]]:
    """Return of each scenario the policies whose rate is looked for, as tuned at the highest load up to 1."""
    chosen: dict[str, dict[str, Settings]] = {}
    for scenario in grid.scenarios:
        mine = [each for each in cells if each.cell.scenario == scenario]
        if not mine:
            continue
        at = max(
            mine,
            key=lambda each: (
                each.cell.load <= 1,
                each.cell.load if each.cell.load <= 1 else -each.cell.load,
            ),
        )
        best = [each for each in at.rivals if each.policy != PLAIN][:RATE_RIVALS]
        chosen[scenario] = {grid.ours: {}, PLAIN: {}, **{each.policy: each.settings for each in best}}
    return chosen


def _show(
    options: BenchOptions,
    grid: Grid,
    code: str,
    results: Mapping[str, TrialResult],
    *,
    rates: RateTable | None,
) -> int:
    report = _write(options, grid, code, results, rates=rates)
    if options.as_json:
        print_json(_data(grid, [*grid.comparisons(results)], code=code, rates=rates))
        return ExitCode.DONE
    show_report(report, stdout)
    if options.html is not None:
        from hexflow_simulator.page import write_html  # drawing takes a second to import

        write_html(report, options.html)
        say(Text(f"Report: {options.html}"))
    return ExitCode.DONE


def _write(
    options: BenchOptions,
    grid: Grid,
    code: str,
    results: Mapping[str, TrialResult],
    *,
    rates: RateTable | None,
) -> Report:
    report = grid_report(grid, [*grid.comparisons(results)], code=code, rates=rates)
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(markdown(report), encoding="utf-8")
    return report


def _data(
    grid: Grid,
    cells: Sequence[CellComparison],
    *,
    code: str,
    rates: RateTable | None,
) -> dict[str, Any]:
    stated = [*claims(cells, grid.rivals), *(rates.claims if rates else ())]
    return {
        "code": code,
        "ours": grid.ours,
        "cells": [asdict(each) for each in cells],
        "missing": len(grid.cells) - len(cells),
        "claims": [{**asdict(each), "holds": each.holds} for each in stated],
        "rates": None if rates is None else asdict(rates),
    }


@contextmanager
def _bar(unit: str) -> Iterator[Any]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, transient=True) as progress:
        task = progress.add_task(unit, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _code() -> str:
    """Return the last commit that touched the kernel or the simulator; the version where there is no repository."""
    here = Path(__file__).resolve().parent
    root = _git(here, "rev-parse", "--show-toplevel")
    folders = ["scheduler/src/hexflow_scheduler", "scheduler/src/hexflow_simulator"]
    commit = _git(Path(root), "log", "-1", "--format=%h", "--", *folders) if root else ""
    if not commit:
        return f"version {version('hexflow')}"
    changed = _git(Path(root), "status", "--porcelain", "--", *folders)
    return f"{commit} with uncommitted changes" if changed else commit


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603, S607
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
