# ruff: noqa: T201  It is run by hand, and what it prints is its result.
"""How long one decision of LeastHarm takes, in a busy fleet: CPU microseconds, with their spread.

The last line is JSON. Beside each figure stands its ratio to a reference loop, a million additions in plain
Python, which a machine of today does in about 30 ns each: a figure of a slow or busy machine is compared by it.
``PYTHONPATH=build/compiled`` measures the compiled kernel (``make compiled``).
"""

import argparse
import json
import sys
from pathlib import Path
from random import Random
from statistics import quantiles
from time import process_time

import hexflow_scheduler

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.busy import BusyFleet
from support.whole_evaluation import compare

SIZES = ((4, 10), (4, 40), (16, 40), (64, 40), (1000, 40))


def reference() -> float:
    """Return the nanoseconds of one turn of the reference loop."""
    total, begin = 0.0, process_time()
    for number in range(1_000_000):
        total += number * 0.5
    return (process_time() - begin) * 1000.0


def measure(instances: int, calls: int, *, decisions: int, seed: int) -> list[float]:
    """Return the microseconds of single decisions, each in a fleet in which something has just changed."""
    busy = BusyFleet(Random(seed), instances=instances, calls=calls)
    values, seconds = busy.rule.parameters[0].default, []
    parameters = hexflow_scheduler.Parameters(exponent=values, fairness=0.0)
    for _ in range(decisions):
        active = busy.a_call()
        begin = process_time()
        (choice,) = busy.rule.place(busy.now, [active], busy.fleet, parameters)
        seconds.append((process_time() - begin) * 1e6)
        busy.carry_on(active, choice.load)
    return seconds[decisions // 10 :]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=300)
    parser.add_argument("--largest", type=int, default=1000, help="instances of the largest fleet measured")
    parser.add_argument(
        "--states", type=int, default=0, help="decisions to compare with the whole evaluation first"
    )
    given = parser.parse_args()
    for number in range(given.states):
        if number % 100 == 0:
            busy = BusyFleet(Random(number), instances=(4, 8, 16, 50)[number // 100 % 4], calls=10)
        compare(busy, exponent=(3.0, 3.0, 1.0, 2.5)[number % 4])
    if given.states:
        print(f"{given.states} choices equal to those of the whole evaluation")
    turn = min(reference() for _ in range(5))
    compiled = str(hexflow_scheduler.kernel.__file__).endswith((".so", ".pyd"))
    print(f"reference loop: {turn:.1f} ns a turn; kernel {'compiled' if compiled else 'in plain Python'}")
    print("instances  calls each   P10    P50    P90  µs a decision     P50 at 30 ns a turn")
    results = []
    for instances, calls in SIZES:
        if instances > given.largest:
            continue
        seconds = measure(instances, calls, decisions=given.decisions, seed=1)
        tenths = quantiles(seconds, n=10)
        low, middle, high = tenths[0], tenths[4], tenths[8]
        print(f"{instances:9} {calls:11} {low:6.0f} {middle:6.0f} {high:6.0f} {middle / turn * 30:30.0f}")
        results.append(
            {
                "instances": instances,
                "calls": calls,
                "p10": round(low, 1),
                "p50": round(middle, 1),
                "p90": round(high, 1),
            }
        )
    print(json.dumps({"reference_ns": round(turn, 1), "compiled": compiled, "decisions_us": results}))


if __name__ == "__main__":
    main()
