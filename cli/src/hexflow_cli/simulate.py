"""`hexflow simulate`: which policy is best for this fleet at this traffic, without a GPU, a router or a clock."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from hexflow_cli.console import print_json, say, stderr, stdout
from hexflow_cli.entries import entries_named
from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.outputpath import refuse_unwritable_file, refuse_unwritable_folder
from hexflow_cli.reporttable import show_report
from hexflow_cli.trafficoptions import TrafficOptions, traffic_of
from hexflow_simulator.complaint import InvalidTrace, InvalidWorkload
from hexflow_simulator.contest import Bound, Contest, RunResult, bound, prepare
from hexflow_simulator.contestdata import contest_data
from hexflow_simulator.contestreport import contest_report, fleet_words, load
from hexflow_simulator.contests import Stopped, run_all
from hexflow_simulator.fleetfile import FleetFile, read_fleet
from hexflow_simulator.report import Report
from hexflow_simulator.standings import Measure, Standings, standings
from hexflow_simulator.traffic import FIRST_SEED, MOST_RESAMPLED, Recorded, Traffic

PACES = (0.5, 0.75, 1.25, 1.5)
"""Further rates of the curve in a report, as multiples of the traffic's own."""
SEEDS = 3
ONE_SEED_FROM = 20_000
"""Queries of a trace from which one seed is enough unless more are asked for."""
_SMALL = 3_000
"""Queries in all that are run in this process: beginning others takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """Hold what the command line said."""

    fleet: Sequence[Path]
    traffic: TrafficOptions
    policies: Sequence[str]
    seeds: int | None
    by: str
    paces: Sequence[float] | None
    """None for those that a report needs, if there is to be one."""
    workers: int | None
    html: Path | None
    png: Path | None
    as_json: bool


def multiples(text: str) -> tuple[float, ...]:
    """Return the numbers between commas; raises CommandError."""
    try:
        found = tuple(float(word) for word in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0.01 <= each <= 100 for each in found):
        raise CommandError(
            f"--sweep takes multiples of the rate from 0.01 to 100 with commas between (0.5,0.75,1.25), not {text!r}.",
            code=ExitCode.USAGE,
            reason="InvalidSweep",
        )
    return found


async def simulate(options: SimulateOptions) -> int:
    """Run every policy on every seed, show who is best, and return the exit code; a cancellation shows what there is."""
    measure = _measure(options.by)
    entries = entries_named(options.policies)
    refuse_unwritable_file(options.html)
    refuse_unwritable_folder(options.png)
    fleet = read_fleet(options.fleet)
    try:
        traffic = traffic_of(options.traffic, fleet)
    except (InvalidTrace, InvalidWorkload) as error:
        raise CommandError(str(error), code=ExitCode.USAGE, reason=type(error).__name__) from error
    contest = Contest(
        fleet=fleet.instances,
        traffic=traffic,
        entries=entries,
        seeds=_seeds(options.seeds, traffic),
        paces=_paces(options, traffic),
    )
    work = _Work(contest, workers=options.workers, drawn=stderr.is_terminal)
    say(Text(work.words, style="dim"))
    running = asyncio.ensure_future(asyncio.to_thread(work.run))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        work.stop.set()
        await running
        _show(work, fleet, options, measure)
        raise
    except (InvalidTrace, InvalidWorkload) as error:  # the file has changed since it was checked
        raise CommandError(str(error), code=ExitCode.USAGE, reason=type(error).__name__) from error
    except BrokenProcessPool as error:
        raise CommandError(
            "A process of the simulation was killed, perhaps for memory; try --workers 1, or fewer --queries.",
            code=ExitCode.ENVIRONMENT,
            reason="ProcessKilled",
        ) from error
    _show(work, fleet, options, measure)
    return ExitCode.DONE


class _Work:
    """The long part, in a thread of its own so that signals are heard."""

    def __init__(self, contest: Contest, *, workers: int | None, drawn: bool) -> None:
        self.contest = contest
        self.stop = threading.Event()
        self.results: list[RunResult] = []
        self.bounds: dict[int, Bound] = {}
        self.load: float | None = None
        self._workers = workers or _workers(contest)
        self._drawn = drawn

    @property
    def words(self) -> str:
        """What is about to happen."""
        runs, queries = len(self.contest.runs), self.contest.traffic.count
        processes = "" if self._workers == 1 else f" in {self._workers} processes"
        return f"{runs} run{'s' if runs > 1 else ''} of {queries:,} queries{processes}; ctrl-C shows what there is by then."

    def run(self) -> None:
        """Run everything; ends early, and quietly, once ``stop`` is set."""
        runs = self.contest.runs
        with _bar(len(runs), self.contest, drawn=self._drawn) as advance:
            try:
                course = prepare(self.contest)
                self.load = load(self.contest)
                for result in run_all(
                    self.contest,
                    course,
                    runs,
                    workers=self._workers,
                    progress=lambda queries: advance(queries, len(self.results)),
                    stop=self.stop.is_set,
                ):
                    self.results.append(result)
                for seed in self.contest.seeds:
                    self.bounds[seed] = bound(self.contest, seed, note=self._obey)
            except Stopped:
                return

    def _obey(self) -> None:
        if self.stop.is_set():
            raise Stopped


def _show(work: _Work, fleet: FleetFile, options: SimulateOptions, measure: Measure) -> None:
    contest = work.contest
    complete = len(work.results) == len(contest.runs)
    try:
        found = standings(
            work.results, contest.entries, measure=measure, bounds=work.bounds, complete=complete
        )
    except ValueError:
        return  # stopped before the first run was done
    notes = [*fleet.notes, *_traffic_notes(contest.traffic)]
    if options.as_json:
        print_json(contest_data(contest, found, notes=notes, load=work.load))
    report = contest_report(
        contest, found, title="Which policy is best", facts=_facts(contest, found, work.load), notes=notes
    )
    if not options.as_json:
        show_report(report, stdout)
    _write(report, options)


def _write(report: Report, options: SimulateOptions) -> None:
    if options.html is None and options.png is None:
        return
    from hexflow_simulator.page import write_html, write_pngs  # drawing takes a second to import

    try:
        if options.html is not None:
            write_html(report, options.html)
            say(Text(f"Report: {options.html}"))
        if options.png is not None:
            paths = write_pngs(report, options.png)
            say(Text(f"{len(paths)} pictures in {options.png}"))
    except OSError as error:
        raise CommandError(
            f"The report cannot be written to {error.filename or options.html or options.png} ({error.strerror}).",
            code=ExitCode.ENVIRONMENT,
            reason="ReportNotWritten",
        ) from error


def _facts(contest: Contest, found: Standings, share: float | None) -> list[tuple[str, str]]:
    traffic = contest.traffic
    rate = f"{traffic.rate:.3g} queries a second" if traffic.rate else "all at once"
    facts = [
        ("Fleet", fleet_words(contest.fleet)),
        ("Traffic", f"{traffic.name}: {traffic.count:,} queries, {rate}"),
    ]
    if share is not None:
        facts.append(("Load", f"{share:.0%} of the rate that no placement could pass"))
    seeds = ", ".join(str(seed) for seed in found.seeds)
    facts.append(
        (
            "Seeds",
            f"{seeds} (1 is the recording, others are drawn from it)" if _is_recorded(traffic) else seeds,
        )
    )
    return facts


def _is_recorded(traffic: Traffic) -> bool:
    return isinstance(traffic, Recorded)


def _traffic_notes(traffic: Traffic) -> list[str]:
    if not isinstance(traffic, Recorded):
        return []
    left_out = getattr(traffic.trace, "left_out", 0)
    notes = []
    if left_out:
        notes.append(f"{left_out} queries of the trace failed or did not end and are left out.")
    if traffic.count < traffic.trace.count:
        notes.append(
            f"Of the trace's {traffic.trace.count:,} queries the first {traffic.count:,} are played."
        )
    notes.append("What a router had learned before is learned here from the trace's own first queries.")
    return notes


def _measure(name: str) -> Measure:
    for measure in Measure:
        if measure.value.lower() == name.lower():
            return measure
    raise CommandError(
        f"There is no measure {name!r} to pick the best by; there are: {', '.join(Measure)}.",
        code=ExitCode.USAGE,
        reason="UnknownMeasure",
    )


def _seeds(wanted: int | None, traffic: Traffic) -> tuple[int, ...]:
    count = wanted or (1 if _is_recorded(traffic) and traffic.count >= ONE_SEED_FROM else SEEDS)
    if _is_recorded(traffic) and count > 1 and traffic.count > MOST_RESAMPLED:
        raise CommandError(
            f"A trace of {traffic.count:,} queries is too large to draw others from; take --seeds 1, or at most "
            f"{MOST_RESAMPLED:,} of its --queries.",
            code=ExitCode.USAGE,
            reason="TraceTooLarge",
        )
    return tuple(range(FIRST_SEED, FIRST_SEED + count))


def _paces(options: SimulateOptions, traffic: Traffic) -> tuple[float, ...]:
    if options.paces is not None:
        return tuple(pace for pace in dict.fromkeys(options.paces) if pace != 1.0)
    wanted = options.html is not None or options.png is not None
    return PACES if wanted and traffic.count < ONE_SEED_FROM else ()


def _workers(contest: Contest) -> int:
    if contest.traffic.count * len(contest.runs) <= _SMALL:
        return 1
    return min(len(contest.runs), os.cpu_count() or 1)


@contextmanager
def _bar(runs: int, contest: Contest, *, drawn: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a bar of queries on a terminal; elsewhere nothing, since a table follows."""
    total = runs * contest.traffic.count
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,} queries"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=stderr,
        transient=True,
        disable=not drawn,
    ) as progress:
        task = progress.add_task(f"0 of {runs} runs", total=total)

        def advance(queries: int, done: int) -> None:
            progress.update(task, completed=queries, description=f"{done} of {runs} runs")

        yield advance
