"""What a contest came to, for people: the answer in a paragraph, tables, what to keep in mind."""

from collections import Counter
from collections.abc import Sequence
from math import isinf, isnan
from statistics import median

from hexflow_simulator.bounds import fluid_rate
from hexflow_simulator.contest import Contest
from hexflow_simulator.contestcharts import contest_charts
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.measure import Figures, Spread
from hexflow_simulator.report import Column, Report, Table
from hexflow_simulator.standings import BOUND, SHOWN, Measure, Standing, Standings
from hexflow_simulator.traffic import FIRST_SEED

_FLUID_SAMPLE = 100


def contest_report(
    contest: Contest, found: Standings, *, title: str, facts: Sequence[tuple[str, str]], notes: Sequence[str]
) -> Report:
    """Return the whole report."""
    return Report(
        title=title,
        summary=tuple(conclusion(found)),
        facts=tuple(facts),
        tables=(
            standings_table(found),
            time_table(found),
            *([served_table(contest, found)] if len(contest.fleet) > 1 else []),
            *([stages_table(found.best)] if len(found.best.by_stage) > 1 else []),
        ),
        charts=contest_charts(contest, found),
        notes=(*notes, *remarks(found)),
    )


def conclusion(found: Standings) -> list[str]:
    """Say which policy is best, by how much, and whether that is more than chance."""
    best, measure = found.best, found.measure
    sentences = [f"{best.label} is best by {measure.words}: {_with_range(best.value(measure), measure)}."]
    equals = [row.label for row in found.equals]
    clear = [row for row in found.rows[1:] if row not in found.equals]
    if clear:
        last = f"; last: {_lag(clear[-1], measure)}" if len(clear) > 1 else ""
        sentences.append(f"Next that is clearly behind: {_lag(clear[0], measure)}{last}.")
    if equals:
        sentences.append(
            f"{_listed(equals)} cannot be told from it: not behind on every seed by more than 1 %."
        )
    if len(found.seeds) == 1 and len(found.rows) > 1:
        sentences.append("This is one seed; more of them (--seeds) show what is chance.")
    paragraphs = [" ".join(sentences)]
    if not found.complete:
        paragraphs.append(
            f"Stopped before its end: what is compared are {len(found.rows)} policies on {_counted(len(found.seeds), 'seed')}."
        )
    return paragraphs


def standings_table(found: Standings) -> Table:
    """Show percentiles, attainment and required scale of each policy, the best first."""
    measure = found.measure
    rows = [
        (
            row.label,
            _with_range(row.p50, Measure.P50),
            _with_range(row.p95, Measure.P95),
            _with_range(row.p99, Measure.P99),
            _with_range(row.attainment, Measure.ATTAINMENT),
            _with_range(row.req95, Measure.REQ95),
            _behind_words(row.behind, measure),
        )
        for row in found.rows
    ]
    faint = frozenset[int]()
    if found.bounds:
        faint = frozenset({len(rows)})
        figures = [each.figures for each in found.bounds]
        p50, p95, p99, met, req95 = (_bound_cell(figures, each) for each in SHOWN)
        rows.append((BOUND, p50, p95, p99, met, req95, ""))
    return Table(
        title="Policies, the best first",
        columns=(
            Column(name="Policy", numbers=False),
            Column(name="P50 s", hint="Half of the queries are answered within."),
            Column(name="P95 s", hint="95 of 100 queries are answered within."),
            Column(name="P99 s"),
            Column(name="In time", hint="Share of queries answered by their deadline (attainment)."),
            Column(name="Req95", hint="The least multiple of the SLO base with 95 of 100 queries in time."),
            Column(
                name="Behind by" if measure is Measure.ATTAINMENT else f"{measure} / best",
                hint="Against the best, seed by seed.",
            ),
        ),
        rows=tuple(rows),
        best=frozenset({0}),
        faint=faint,
        note=(
            f"Medians over {_counted(len(found.seeds), 'seed')}"
            + (", with their range" if len(found.seeds) > 1 else "")
            + "; the first tenth of the queries is left out. The bound, which no policy can beat: each call on the fastest"
            " GPU for it, idle, with its prefix cached."
        ),
    )


def time_table(found: Standings) -> Table:
    """Show where the time of a call went under each policy."""
    rows = []
    for row in found.rows:
        spent = row.spent
        calls = spent.calls or 1
        rows.append(
            (
                row.label,
                f"{row.calls_per_query:.1f}",
                _seconds(spent.waiting / calls),
                _seconds(spent.prefill / calls),
                _seconds(spent.decode / calls),
                _share(spent.cached_tokens / spent.prompt_tokens) if spent.prompt_tokens else "–",
            )
        )
    return Table(
        title="Where the time of a call went",
        columns=(
            Column(name="Policy", numbers=False),
            Column(name="Calls a query"),
            Column(name="Waiting s", hint="From its release to being sent."),
            Column(
                name="Prefill s", hint="From being sent to its first token; the engine's own queue included."
            ),
            Column(name="Decode s", hint="From its first token to its last."),
            Column(name="Cached", hint="Prompt tokens that needed no prefill."),
        ),
        rows=tuple(rows),
        best=frozenset({0}),
        note="Means over the calls.",
    )


def served_table(contest: Contest, found: Standings) -> Table:
    """Show which share of the tokens each pool wrote under each policy."""
    pools = list(dict.fromkeys(each.instance.pool for each in contest.fleet))
    members = {pool: [each for each in contest.fleet if each.instance.pool == pool] for pool in pools}
    names = {each.instance.instance_id: each.instance.pool for each in contest.fleet}
    rows = []
    for row in found.rows:
        written: Counter[str] = Counter()
        for instance, spent in row.by_instance.items():
            written[names.get(instance, names.get(instance.rpartition("~")[0], ""))] += spent.output_tokens
        total = sum(written.values()) or 1
        rows.append((row.label, *(_share(written[pool] / total) for pool in pools)))
    return Table(
        title="Who wrote the tokens",
        columns=(
            Column(name="Policy", numbers=False),
            *(
                Column(name=f"{pool} ({len(members[pool])} × {members[pool][0].instance.gpu_type})")
                for pool in pools
            ),
        ),
        rows=tuple(rows),
        best=frozenset({0}),
        note="Share of the output tokens.",
    )


def stages_table(row: Standing) -> Table:
    """Show where the time of each stage's calls went under one policy."""
    queries = sum(run.queries for run in row.runs) or 1
    return Table(
        title=f"Stage by stage under {row.label}",
        columns=(
            Column(name="Stage", numbers=False),
            Column(name="Calls a query"),
            Column(name="Waiting s"),
            Column(name="Prefill s"),
            Column(name="Decode s"),
            Column(name="Prompt tokens"),
            Column(name="Output tokens"),
        ),
        rows=tuple(
            (
                stage,
                f"{spent.calls / queries:.2f}",
                _seconds(spent.waiting / spent.calls),
                _seconds(spent.prefill / spent.calls),
                _seconds(spent.decode / spent.calls),
                f"{spent.prompt_tokens / spent.calls:,.0f}",
                f"{spent.output_tokens / spent.calls:,.0f}",
            )
            for stage, spent in row.by_stage.items()
        ),
        note="Means over the calls.",
    )


def remarks(found: Standings) -> list[str]:
    """Return what a reader should know that no table says."""
    said = []
    for row in found.rows:
        reasons: Counter[str] = Counter()
        for run in row.runs:
            reasons.update(run.reasons)
        if reasons:
            queries = sum(run.queries for run in row.runs)
            why = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
            said.append(
                f"Under {row.label}, {sum(reasons.values())} of {queries} queries have no answer ({why}); they count as infinitely late."
            )
    return said


def fleet_words(fleet: Sequence[SimulatedInstance]) -> str:
    """Say what a fleet is."""
    kinds = Counter((each.instance.pool, each.instance.gpu_type) for each in fleet)
    return ", ".join(f"{count} × {gpu} ({pool})" for (pool, gpu), count in kinds.items())


def load(contest: Contest) -> float | None:
    """Return the traffic's rate over that which no placement can pass; None where the traffic has no rate."""
    sample = [
        query for query, _ in zip(contest.traffic.queries(FIRST_SEED), range(_FLUID_SAMPLE), strict=False)
    ]
    limit = fluid_rate(sample, contest.fleet, rounds=200)
    return contest.traffic.rate / limit if limit and contest.traffic.rate else None


def _bound_cell(figures: Sequence[Figures], measure: Measure) -> str:
    return _value(median(measure.of(each) for each in figures), measure)


def _with_range(values: Spread, measure: Measure) -> str:
    low, high = _value(values.low, measure), _value(values.high, measure)
    middle = _value(values.median, measure)
    return middle if low == high else f"{middle} ({low.removesuffix('%')}–{high.removesuffix('%')})"


def _value(value: float, measure: Measure) -> str:
    if isnan(value):
        return "–"
    if isinf(value):
        return "∞"
    if measure is Measure.ATTAINMENT:
        return _share(value)
    return f"{value:.2f}" if measure is Measure.REQ95 or abs(value) < 10 else f"{value:.1f}"


def _behind_words(behind: Spread, measure: Measure) -> str:
    if measure is Measure.ATTAINMENT:
        return f"{100 * behind.median:.1f} points"
    middle, low, high = (("∞" if isinf(v) else f"{v:.2f}") for v in (behind.median, behind.low, behind.high))
    return middle if low == high else f"{middle} ({low}–{high})"


def _lag(row: Standing, measure: Measure) -> str:
    if measure is Measure.ATTAINMENT:
        return f"{row.label}, by {_behind_words(row.behind, measure)}"
    return f"{row.label}, {_behind_words(row.behind, measure)} times its {measure}"


def _seconds(value: float) -> str:
    return f"{value:.2f}"


def _share(value: float) -> str:
    return f"{value:.0%}" if value in (0.0, 1.0) else f"{value:.1%}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
