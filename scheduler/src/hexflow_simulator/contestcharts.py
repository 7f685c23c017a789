"""The charts of a contest: how long queries take, how many are in time, P95 against the rate, one query in full."""

from collections.abc import Callable, Sequence
from math import isfinite

from hexflow_simulator.chart import Bar, Chart, Gantt, Lines, Phase, Series
from hexflow_simulator.contest import Contest, Points, RunResult
from hexflow_simulator.result import CallResult
from hexflow_simulator.standings import BOUND, Standing, Standings

MOST_LINES = 8
"""Policies in a chart: the best, and the next ones."""
_MOST_ROWS = 24


def contest_charts(contest: Contest, found: Standings) -> tuple[Chart, ...]:
    """Return the charts: distributions and Gantt of the first seed, latency against rate."""
    drawn: list[Chart] = [_latencies(found)]
    if any(row.runs[0].scales for row in found.rows):
        drawn.append(_attainment(found))
    if any(len(row.paced) > 1 for row in found.rows):
        drawn.append(_rates(contest, found))
    return (*drawn, *_gantts(contest, found))


def _latencies(found: Standings) -> Lines:
    series = _distributions(found, lambda run: run.latencies)
    if found.bounds:
        series.append(Series(name=BOUND, points=found.bounds[0].latencies, bound=True))
    return Lines(
        name="latency-distribution",
        title="How long queries take",
        x="seconds from a query's arrival to its answer (log)",
        y="share of queries",
        series=tuple(series),
        shares=True,
        x_log=True,
        note=_first_seed(found) + " Further left is better.",
    )


def _attainment(found: Standings) -> Lines:
    series = _distributions(found, lambda run: run.scales)
    if found.bounds:
        series.append(Series(name=BOUND, points=found.bounds[0].scales, bound=True))
    return Lines(
        name="attainment-against-slo-scale",
        title="Share of queries in time, against the SLO scale",
        x="SLO scale (multiple of the SLO base, log)",
        y="share of queries in time",
        series=tuple(series),
        shares=True,
        x_log=True,
        note=_first_seed(found) + " Where a line passes 95 % is its Req95.",
    )


def _rates(contest: Contest, found: Standings) -> Lines:
    rate = contest.traffic.rate or 1.0
    return Lines(
        name="p95-against-rate",
        title="P95 against the arrival rate",
        x="queries a second" if contest.traffic.rate else "pace (1 = as given)",
        y="P95 (s, log)",
        y_log=True,
        dots=True,
        series=tuple(
            Series(
                name=row.label,
                points=tuple((run.run.pace * rate, run.figures.p95) for run in row.paced),
                marked=row is found.best,
            )
            for row in found.rows[:MOST_LINES]
        ),
        verticals=((rate, "the traffic's own rate"),),
        note=f"Seed {found.seeds[0]}: the same queries, closer together or wider apart. Points where P95 is infinite are missing.",
    )


def _distributions(found: Standings, of: Callable[[RunResult], Points]) -> list[Series]:
    return [
        Series(name=row.label, points=_seen(of(row.runs[0])), marked=row is found.best)
        for row in found.rows[:MOST_LINES]
    ]


def _gantts(contest: Contest, found: Standings) -> list[Gantt]:
    """Return the picture of one query under the best policy, and under round robin or the last one."""
    other = next((row for row in found.rows[1:] if row.entry.policy == "RoundRobin"), None) or (
        found.rows[-1] if len(found.rows) > 1 else None
    )
    pairs = [
        (place, row)
        for place, row in (("best", found.best), ("other", other))
        if row is not None and len(row.runs[0].shown) > 1
    ]
    if not pairs:
        return []
    latest = max(call.finished - _begin(row.runs[0].shown) for _, row in pairs for call in row.runs[0].shown)
    return [_gantt(contest, row, place, latest) for place, row in pairs]


def _gantt(contest: Contest, row: Standing, place: str, until: float) -> Gantt:
    calls = row.runs[0].shown
    begin = _begin(calls)
    used = {call.instance_id for call in calls}
    rows = [each.instance.instance_id for each in contest.fleet]
    if len(rows) > _MOST_ROWS:
        rows = [name for name in rows if name in used]
    rows += sorted(used - set(rows))
    bars = [
        Bar(row=call.instance_id, begin=first - begin, end=last - begin, kind=call.stage, phase=phase)
        for call in calls
        for phase, first, last in (
            (Phase.WAITING, call.released, call.sent),
            (Phase.PREFILL, call.sent, call.first_token),
            (Phase.DECODE, call.first_token, call.finished),
        )
        if last > first
    ]
    # Colours go by the order of the stages, which is that of their first releases.
    bars.sort(key=lambda bar: bar.begin)
    return Gantt(
        name=f"one-query-{place}",
        title=f"One query across the instances under {row.label}",
        x="seconds since it arrived",
        rows=tuple(rows),
        bars=tuple(bars),
        until=until * 1.02,
        note=(
            f"Query {calls[0].query_id}, one that is longer than 95 of 100: {max(c.finished for c in calls) - begin:.1f} s. "
            "A call is a bar: pale while it waits, half pale from being sent to its first token, full while it writes."
        ),
    )


def _begin(calls: Sequence[CallResult]) -> float:
    return min(call.released for call in calls)


def _first_seed(found: Standings) -> str:
    more = len(found.rows) - MOST_LINES
    others = f" The best {MOST_LINES} of {len(found.rows)} policies." if more > 0 else ""
    return f"Seed {found.seeds[0]}, the first tenth of its queries left out.{others}"


def _seen(points: Points) -> Points:
    return tuple(point for point in points if isfinite(point[0]))
