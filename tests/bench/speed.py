"""How fast queries are simulated: ``make bench-speed``, compiled, or ``python tests/bench/speed.py`` as installed.

Prints simulated calls per second of processor time for each case, the median of interleaved repeats with
their range, and beside it the ratio to a reference loop (heap and dict operations in pure Python) that runs
between them, since machines differ and other work slows both. The last line is the same as JSON.
Queries are drawn before the clock starts; those of the million are drawn as they come.
"""

import argparse
import gc
import heapq
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from hexflow_scheduler import Policy
from hexflow_simulator import simulate, simulation
from hexflow_simulator.scenario import Scenario, scenario_named

LOAD = 0.8
REFERENCE_STEPS = 200_000
REFERENCE_QUIET = 2_000_000
"""Steps a second of the reference loop on the machine of the stated figures while it is quiet (CPython 3.11)."""
TARGETS = {"RoundRobin on 4": 20_000, "LeastHarm on 4": 8_000, "LeastHarm on 64": 3_000}
"""Calls per second where the reference loop runs at ``REFERENCE_QUIET``."""
GRID_SECONDS = 6.0


def say(line: str) -> None:
    """Print a line at once: a row takes a while."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def reference() -> float:
    """Return the steps per second of a fixed loop: a push, a pop and three looks into dicts each."""
    began = time.process_time()
    heap: list[tuple[float, int]] = []
    seen: dict[int, float] = {}
    for step in range(REFERENCE_STEPS):
        key = step * 7919 % 1009
        seen[key] = seen.get(key, 0.0) + 1.0
        heapq.heappush(heap, (seen[key] * key, step))
        if len(heap) > 64:
            heapq.heappop(heap)
    return REFERENCE_STEPS / (time.process_time() - began)


class Case:
    """Run one policy on a scenario at load 0.8."""

    def __init__(self, scenario: Scenario, policies: list[Policy], count: int) -> None:
        self.fleet = scenario.fleet
        self.policies = policies
        self.queries = list(scenario.queries(1, load=LOAD, count=count))

    def run(self) -> tuple[int, float]:
        """Return calls and processor seconds."""
        gc.collect()
        calls = 0
        began = time.process_time()
        for policy in self.policies:
            calls += simulate(self.queries, self.fleet, policy).call_count
        return calls, time.process_time() - began


def resident() -> int:
    """Return the bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory(calls: int) -> dict[str, float]:
    """Return megabytes after a tenth of so many calls and at the end, and calls per processor second."""
    scenario = scenario_named("S1")
    each = sum(1 for _ in _all_calls(scenario)) / 200
    count = round(calls / each)
    seen: list[int] = []

    def look(ended: int) -> None:
        if ended in (count // 10, count):
            gc.collect()
            seen.append(resident())

    began = time.process_time()
    result = simulate(
        scenario.queries(2, load=LOAD, count=count),
        scenario.fleet,
        Policy.named("LeastHarm"),
        progress=look,
        on_query=lambda query: None,
    )
    seconds = time.process_time() - began
    return {
        "calls": result.call_count,
        "mb_at_a_tenth": round(seen[0] / 1e6, 1),
        "mb_at_the_end": round(seen[-1] / 1e6, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, 1),
        "calls_per_second_with_drawing": round(result.call_count / seconds),
    }


def _all_calls(scenario: Scenario) -> list[object]:
    found: list[object] = []
    for query in scenario.queries(3, load=LOAD, count=200):
        waiting = [call for stage in query.stages for call in stage.calls]
        while waiting:
            call = waiting.pop()
            found.append(call)
            waiting.extend(call.then)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--million", type=int, default=1_000_000, help="calls of the memory run; 0 for none")
    given = parser.parse_args()
    small, large = scenario_named("S1"), scenario_named("X6")
    alphas = [Policy.named("HexGenFlow", alpha=step / 10) for step in range(11)]
    cases = {
        "RoundRobin on 4": Case(small, [Policy.named("RoundRobin")], 500),
        "LeastHarm on 4": Case(small, [Policy.named("LeastHarm")], 500),
        "LeastHarm on 64": Case(large, [Policy.named("LeastHarm")], 500),
        "alpha grid": Case(small, alphas, 500),
    }
    compiled = not str(simulation.__file__).endswith(".py")
    say(
        f"{'compiled' if compiled else 'pure Python'}, Python {sys.version.split()[0]}, {given.repeats} repeats"
    )
    speeds: dict[str, list[float]] = {name: [] for name in cases}
    ratios: dict[str, list[float]] = {name: [] for name in cases}
    took: dict[str, list[float]] = {name: [] for name in cases}
    loops: list[float] = []
    for _ in range(given.repeats):
        for name, case in cases.items():
            before = reference()
            calls, seconds = case.run()
            loop = (before + reference()) / 2
            loops.append(loop)
            speeds[name].append(calls / seconds)
            ratios[name].append(calls / seconds / loop)
            took[name].append(seconds)
    report: dict[str, object] = {
        "compiled": compiled,
        "python": sys.version.split()[0],
        "load_average": os.getloadavg()[0],
        "reference_steps_per_second": _three(loops, 0),
    }
    say(f"reference loop: {_range(loops)} steps/s (quiet: {REFERENCE_QUIET:,})")
    say("| case | calls/CPU s | at the quiet reference's speed | target |")
    say("| --- | --- | --- | --- |")
    for name in cases:
        scaled = median(ratios[name]) * REFERENCE_QUIET
        target = TARGETS.get(name)
        say(f"| {name} | {_range(speeds[name])} | {scaled:,.0f} | {f'{target:,}' if target else ''} |")
        report[name] = {
            "calls_per_second": _three(speeds[name], 0),
            "per_1000_reference_steps": _three([1000 * ratio for ratio in ratios[name]], 3),
            "at_quiet_speed": round(scaled),
            "target": target,
        }
    grid = [
        seconds * loop / REFERENCE_QUIET
        for seconds, loop in zip(took["alpha grid"], loops[3::4], strict=True)
    ]
    say(
        f"alpha grid: 11 points over {len(cases['alpha grid'].queries)} queries in {median(took['alpha grid']):.1f} CPU s"
        f" ({median(grid):.1f} at the quiet reference's speed; target {GRID_SECONDS:g})"
    )
    report["alpha_grid_seconds"] = {
        "median": round(median(took["alpha grid"]), 2),
        "at_quiet_speed": round(median(grid), 2),
    }
    if given.million:
        report["memory"] = found = memory(given.million)
        say(
            f"memory over {found['calls']:,} calls: {found['mb_at_a_tenth']} MB after a tenth, {found['mb_at_the_end']} MB at the end"
        )
    say(json.dumps(report))


def _three(values: list[float], digits: int) -> dict[str, float]:
    pick: dict[str, Callable[[list[float]], float]] = {"median": median, "low": min, "high": max}
    return {name: round(of(values), digits or None) for name, of in pick.items()}


def _range(values: list[float]) -> str:
    return f"{median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


if __name__ == "__main__":
    main()
