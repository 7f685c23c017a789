"""The benchmark's report: each cell with its best rival, what holds over all of them, and what does not.

Made from whatever cells are complete, so a benchmark that is under way has a report too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from hexflow_simulator.chart import Chart, Lines, Series
from hexflow_simulator.comparison import CellComparison, Standing
from hexflow_simulator.grid import Claim, Grid, claims, gpu_types, is_unequal
from hexflow_simulator.measure import Spread
from hexflow_simulator.rates import RateTable
from hexflow_simulator.report import Column, Report, Table
from hexflow_simulator.scenario import SCENARIOS

EVEN = 0.01
"""Of a ratio: what differs by less counts as even."""
DRAWN = 6
"""Baselines in the chart: those that come nearest."""


def grid_report(
    grid: Grid, cells: Sequence[CellComparison], *, code: str, rates: RateTable | None = None
) -> Report:
    """Return the report."""
    stated = [*claims(cells, grid.rivals), *(rates.claims if rates else ())]
    tables = [_claims(stated), _cells(cells), _lost(grid, cells), _rivals(grid, cells)]
    tables += [_rates(rates)] if rates is not None else []
    return Report(
        title="Benchmark",
        summary=_summary(grid, cells, stated),
        facts=(("Results of", code), ("Cells", f"{len(cells)} of {len(grid.cells)} are complete")),
        tables=(*(table for table in tables if table.rows), _scenarios(grid)),
        charts=_charts(grid, cells),
        notes=_notes(grid),
    )


def markdown(report: Report) -> str:
    """Return the text of a report as a page of Markdown."""
    return "\n\n".join(_blocks(report)) + "\n"


def ratio(found: Spread) -> str:
    """Write a ratio with its range."""
    return f"{found.median:.3f} ({found.low:.2f}-{found.high:.2f})"


def settings(standing: Standing) -> str:
    """Write a policy with the settings that were best."""
    values = ", ".join(f"{name} {value:g}" for name, value in standing.settings.items())
    return f"{standing.policy} ({values})" if values else standing.policy


def _blocks(report: Report) -> Iterator[str]:
    yield f"# {report.title}"
    yield "\n".join(f"* {word}: {meaning}" for word, meaning in report.facts)
    yield from report.summary
    yield "\n".join(f"* {note}" for note in report.notes)
    for table in report.tables:
        yield f"## {table.title}"
        yield _table(table)
        if table.note:
            yield table.note


def _table(table: Table) -> str:
    marks = ["---:" if column.numbers else "---" for column in table.columns]
    rows = [[column.name for column in table.columns], marks, *table.rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _words(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, numbers=False) for name in names)


def _numbers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name) for name in names)


def _summary(grid: Grid, cells: Sequence[CellComparison], stated: Sequence[Claim]) -> tuple[str, ...]:
    if not cells:
        return ("No cell is complete yet.",)
    lost = [each for each in cells if each.best.p95_over_ours.median < 1]
    clearly = [each for each in lost if each.best.p95_over_ours.median < 1 - EVEN]
    held = sum(claim.holds for claim in stated)
    return (
        f"Of {len(cells)} cells {grid.ours} wins {len(cells) - len(lost)} and loses {len(lost)} by the median of P95, "
        f"{len(clearly)} of them by more than {EVEN:.0%}; {held} of {len(stated)} claims hold.",
    )


def _notes(grid: Grid) -> tuple[str, ...]:
    return (
        f"{grid.ours} with its defaults against {len(grid.rivals)} baselines: {len(grid.scenarios)} scenarios at loads "
        f"{', '.join(f'{load:g}' for load in grid.loads)}. 1 is the rate at which the best of five baselines just has 95 % of the queries "
        "within three SLO bases.",
        f"Every baseline that has something to set is tuned in each cell, on {len(grid.tuning_seeds)} seeds. What is compared are "
        f"{len(grid.seeds)} others, with the very same queries at the very same instants for all. The best baseline of a cell is picked "
        "afterwards, which favours the baselines.",
        "Ratios are a baseline's seconds over ours, seed by seed: above 1 we are ahead. The median, and the range over the seeds in brackets.",
        "The bound is what no policy can beat: each query's critical path on the fastest idle GPUs with its prompts in the cache.",
    )


def _claims(found: Sequence[Claim]) -> Table:
    return Table(
        title="What is claimed",
        columns=(*_words("Claim"), *_numbers("Wanted", "Found", "Cells"), *_words("")),
        rows=tuple(
            (
                claim.text,
                f"{claim.wanted:.2f}",
                f"{claim.found:.3f}",
                str(claim.cells),
                "holds" if claim.holds else "does not hold",
            )
            for claim in found
        ),
    )


def _cells(cells: Sequence[CellComparison]) -> Table:
    return Table(
        title="Cell by cell",
        columns=(
            *_words("Scenario", "Load", "Best baseline"),
            *_numbers("Its P95 / ours", "Its P50 / ours", "P50, s", "P95, s", "Req95", "In time"),
            *_numbers("Bound of P95, s", "P95 / bound"),
        ),
        rows=tuple(
            (
                each.cell.scenario,
                f"{each.cell.load:g}",
                settings(each.best),
                ratio(each.best.p95_over_ours),
                ratio(each.best.p50_over_ours),
                f"{each.ours.p50.median:.1f}",
                f"{each.ours.p95.median:.1f}",
                f"{each.ours.req95.median:.2f}",
                f"{each.ours.attainment.median:.1%}",
                "" if each.bound is None else f"{each.bound.p95.median:.1f}",
                "" if each.bound is None else f"{each.bound.p95_ours_over.median:.2f}",
            )
            for each in sorted(cells, key=_place)
        ),
    )


def _lost(grid: Grid, cells: Sequence[CellComparison]) -> Table:
    lost = [each for each in cells if each.best.p95_over_ours.median < 1]
    return Table(
        title="Cells that are lost",
        columns=_words("Scenario", "Load", f"Better than {grid.ours}: P95 over ours"),
        rows=tuple(
            (
                each.cell.scenario,
                f"{each.cell.load:g}",
                ", ".join(
                    f"{settings(rival)} {ratio(rival.p95_over_ours)}"
                    for rival in each.rivals
                    if rival.p95_over_ours.median < 1
                ),
            )
            for each in sorted(lost, key=lambda each: each.best.p95_over_ours.median)
        ),
    )


def _rivals(grid: Grid, cells: Sequence[CellComparison]) -> Table:
    best = Counter(each.best.policy for each in cells)
    rows = []
    for rival in grid.rivals if cells else ():
        found = [standing for each in cells if (standing := each.rival(rival)) is not None]
        p95 = [each.p95_over_ours.median for each in found]
        p50 = [each.p50_over_ours.median for each in found]
        figures = (fold(values) for values in (p95, p50) for fold in (min, median, max))
        rows.append((rival, *(f"{figure:.2f}" for figure in figures), str(best[rival])))
    return Table(
        title="Baseline by baseline, over all cells",
        columns=(
            *_words("Baseline"),
            *_numbers("P95 / ours, least", "median", "most", "P50 / ours, least", "median", "most"),
            *_numbers("Best in cells"),
        ),
        rows=tuple(rows),
    )


def _rates(rates: RateTable) -> Table:
    return Table(
        title="Sustainable rate",
        columns=(
            *_words("Scenario"),
            *_numbers(*rates.policies, f"{rates.ours} / best", f"{rates.ours} / {rates.plain}", "Fluid"),
        ),
        rows=tuple(
            (
                row.scenario,
                *(f"{row.of[policy].median:.3g}" if policy in row.of else "" for policy in rates.policies),
                "" if row.best_over is None else f"{row.best_over:.2f}",
                "" if row.plain_over is None else f"{row.plain_over:.2f}",
                f"{row.fluid:.3g}",
            )
            for row in rates.rows
        ),
        note=f"Queries a second with {rates.share:.0%} of them within {rates.scale:g} SLO bases, found by bisection to {rates.tolerance:.0%}, "
        f"the median of {rates.seeds} seeds. Fluid: the rate that no placement can pass in the long run; a rate above it"
        " says that so few queries were over before they had piled up that far.",
    )


def _scenarios(grid: Grid) -> Table:
    return Table(
        title="The scenarios",
        columns=(
            *_words("Scenario", "What it is"),
            *_numbers("Rate at load 1", "Queries"),
            *_words("Unequal"),
            *_numbers("GPU types"),
        ),
        rows=tuple(
            (
                name,
                SCENARIOS[name].title,
                f"{SCENARIOS[name].rate:g}",
                str(grid.count or SCENARIOS[name].count),
                "yes" if is_unequal(name) else "no",
                str(gpu_types(name)),
            )
            for name in grid.scenarios
        ),
    )


def _charts(grid: Grid, cells: Sequence[CellComparison]) -> tuple[Chart, ...]:
    loads = sorted({each.cell.load for each in cells})
    if len(loads) < 2:
        return ()

    def points(rival: str) -> tuple[tuple[float, float], ...]:
        return tuple((load, median(_ratios(cells, rival, load))) for load in loads)

    nearest = sorted(grid.rivals, key=lambda rival: sum(height for _, height in points(rival)))[:DRAWN]
    return (
        Lines(
            name="p95-over-ours",
            title=f"P95 of the baselines that come nearest, over that of {grid.ours}",
            x="load, share of the scenario's rate",
            y="P95 over ours, median of the scenarios",
            series=tuple(Series(name=rival, points=points(rival)) for rival in nearest),
            dots=True,
        ),
    )


def _ratios(cells: Iterable[CellComparison], rival: str, load: float) -> list[float]:
    standings = (each.rival(rival) for each in cells if each.cell.load == load)
    return [each.p95_over_ours.median for each in standings if each is not None]


def _place(cell: CellComparison) -> tuple[int, float]:
    names = list(SCENARIOS)
    return names.index(cell.cell.scenario), cell.cell.load
