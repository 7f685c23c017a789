"""Simulate a trace of gigabytes: ``make bench-trace``, compiled, or ``python tests/bench/large_trace.py`` as installed.

Writes a trace of generated queries into a temporary folder, runs ``hexflow simulate`` on it with one policy in one
process, and prints the peak of that process' memory and its processor seconds. The trace is deleted.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path

from hexflow_simulator import simulation
from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.mix import mix_named
from hexflow_simulator.query import SimulatedQuery
from hexflow_simulator.tracefile import write_trace
from hexflow_simulator.workload import Workload

FLEET = Path(__file__).parents[2] / "examples" / "which-policy" / "fleet.yaml"
MODEL = "Qwen/Qwen2.5-Coder-7B-Instruct"
RATE = 1.0
"""Queries a second: a third of what the fleet can serve, so that none pile up."""
DRAWN = 2000
"""Queries that are drawn; the trace has them again and again, under new ids and at new instants."""


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def queries(path: Path, size: int) -> Iterator[SimulatedQuery]:
    """Yield queries until the file that is being written, which lies beside ``path``, has so many bytes."""
    workload = Workload(mix=mix_named("natural"), arrivals=Poisson(RATE), model=MODEL, databases=10)
    drawn = list(workload.queries(1, count=DRAWN))
    length, written = drawn[-1].arrival + 1 / RATE, 0
    for number, query in enumerate(cycle(drawn)):
        if number % DRAWN == 0:
            written = sum(each.stat().st_size for each in path.parent.glob(f".{path.name}.*"))
        if written >= size:
            return
        start = number // DRAWN * length
        yield replace(query, query_id=f"q{number}", arrival=start + query.arrival)


def main() -> None:
    """Write, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--policy", default="RoundRobin")
    parser.add_argument("--queries", type=int, help="how many are played (default: all that were read)")
    parser.add_argument("--folder", type=Path, help="where the trace lies meanwhile (default: the system's)")
    given = parser.parse_args()
    compiled = not str(simulation.__file__).endswith(".py")
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "large.jsonl"
        count = write_trace(path, queries(path, round(given.gigabytes * 1e9)))
        size = path.stat().st_size
        say(f"{size / 1e9:.2f} GB, {count:,} queries; {'compiled' if compiled else 'pure Python'}")
        began, output = time.monotonic(), Path(folder) / "result.json"
        command = [
            sys.executable, "-m", "hexflow_cli", "simulate", "--fleet", str(FLEET), "--trace", str(path),
            "--policy", given.policy, "--seeds", "1", "--workers", "1", "--json",
            *(["--queries", str(given.queries)] if given.queries else []),
        ]  # fmt: skip
        to_file = [(os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT, 0o600)]
        process = os.posix_spawn(sys.executable, command, os.environ, file_actions=to_file)
        _, status, used = os.wait4(process, 0)
        if status:
            sys.exit(f"hexflow simulate ended with status {os.waitstatus_to_exitcode(status)}")
        found = json.loads(output.read_bytes())
    calls = sum(run["calls"] for policy in found["policies"] for run in policy["runs"])
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {
        "gigabytes": round(size / 1e9, 2),
        "queries": count,
        "queries_played": given.queries or count,
        "calls": calls,
        "policy": given.policy,
        "compiled": compiled,
        "peak_mb": round(used.ru_maxrss * 1024 / 1e6, 1),
        "writer_peak_mb": round(own * 1024 / 1e6, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "seconds": round(time.monotonic() - began, 1),
    }
    if used.ru_maxrss <= own:  # a process begins with its parent's peak
        say("the peak may be the writer's")
    say(json.dumps(figures))


if __name__ == "__main__":
    main()
