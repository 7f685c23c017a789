# ruff: noqa: T201  It is run by hand, and what it prints is its result.
"""What LeastHarm loses when lengths, speeds, rates or neighbours are not as they should be: five figures.

``make bench-robust``, compiled, or ``python tests/bench/robust.py``. Each line is the median over scenarios and
seeds, with the range; the last line is the same as JSON.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from statistics import median

from hexflow_scheduler import Policy
from hexflow_simulator.robustness import (
    RECOVERED,
    Spot,
    burst,
    flood,
    learned_scale,
    lost_by_lengths,
    lost_by_speed,
)
from hexflow_simulator.scenario import scenario_named

RIVALS = (
    Policy.named("EarliestFinish"),
    Policy.named("HexGenFlow", beta=1.0),
    Policy.named("StickyUntilSaturated"),
    Policy.named("PrefixPowerOfTwo"),
    Policy.named("JustEnough"),
    Policy.named("LeastOutstanding"),
)
"""With which a burst is compared."""

NEIGHBOURLY = (
    Policy.named("LeastHarm", fairness=1.0),
    Policy.named("LeastHarm"),
    Policy.named("LeastHarm+VTC"),
    Policy.named("LeastOutstanding+VTC"),
)
"""Under which a tenant's neighbour floods the fleet: what is to be set for that, and others to compare with."""


class Bench:
    """Run the five, and keep what they print."""

    def __init__(
        self, *, ours: Policy, scenarios: Sequence[str], seeds: Sequence[int], load: float, count: int
    ):
        self.ours = ours
        self.seeds = seeds
        self.spots = [Spot(scenario=scenario_named(name), load=load, count=count) for name in scenarios]
        self.found: dict[str, object] = {}

    def say(self, name: str, text: str, values: Sequence[float], *, wanted: float, unit: str = "") -> None:
        """Print one line: the median with the range, and what is wanted of the median."""
        middle = median(values)
        mark = "holds" if middle <= wanted else "FAILS"
        print(
            f"{mark}  {middle:7.2f}{unit} ({min(values):.2f} to {max(values):.2f}, n={len(values)}; wanted at most"
            f" {wanted:.4g}{unit})  {text}",
            flush=True,
        )
        self.found[name] = {"median": middle, "values": list(values), "wanted": wanted}

    def lengths(self) -> None:
        """Errors in lengths."""
        losses = [
            100 * (lost_by_lengths(spot, self.ours, seed, error=0.3) - 1)
            for spot in self.spots
            for seed in self.seeds
        ]
        self.say("lengths", "P95 lost by a lognormal error of 0.3 in lengths", losses, wanted=3.0, unit=" %")

    def speed(self) -> None:
        """A wrong profile."""
        losses = [
            100 * (lost_by_speed(spot, self.ours, seed, place=place, factor=1.5) - 1)
            for spot in self.spots
            for seed in self.seeds
            for place in (0, len(spot.scenario.fleet) - 1)
        ]
        text = "P95 lost by believing the first, or the last, instance 1.5 times as fast as it is"
        self.say("speed", text, losses, wanted=8.0, unit=" %")

    def scale(self) -> None:
        """An instance that changes."""
        for text, factor, dies in (
            ("halved its speed", 2.0, False),
            ("died and came back", 1.0, True),
            ("died and came back at half its speed", 2.0, True),
        ):
            errors = [
                100 * learned_scale(spot, self.ours, seed, place=0, factor=factor, dies=dies).error
                for spot in self.spots
                for seed in self.seeds
            ]
            name = f"scale {text}"
            self.say(
                name, f"error of a scale 20 calls after its instance {text}", errors, wanted=25.0, unit=" %"
            )

    def burst(self) -> None:
        """Ten times the rate for 30 s."""
        for spot in (replace_load(each, 0.5) for each in self.spots):
            ours = [burst(spot, self.ours, seed) for seed in self.seeds]
            for policy in RIVALS:
                theirs = [burst(spot, policy, seed) for seed in self.seeds]
                levels = [RECOVERED * each.usual for each in theirs]
                mine, its = (
                    median(each.back(level) for each, level in zip(runs, levels, strict=True))
                    for runs in (ours, theirs)
                )
                name = f"burst {spot.scenario.name} {policy.name}"
                text = (
                    f"s after a burst until {spot.scenario.name} is back at 1.2 times {policy.name}'s usual"
                    f" {median(each.usual for each in theirs):.0f} s (ours: {median(each.usual for each in ours):.0f} s)"
                )
                self.say(name, text, [mine], wanted=its)

    def neighbour(self) -> None:
        """A tenant in flood."""
        for policy in NEIGHBOURLY:
            found = [
                flood(replace_load(spot, 0.6), policy, seed, factor=5.0)
                for spot in self.spots
                for seed in self.seeds
            ]
            calm, flooded, other = (
                median(values)
                for values in zip(*((f.calm, f.flooded, f.flooded_other) for f in found), strict=True)
            )
            name = " ".join([policy.name, *(f"{key}={value:g}" for key, value in policy.parameters.items())])
            text = (
                f"points of attainment lost under {name} by a tenant ({calm:.0%} to {flooded:.0%}) whose neighbour asks"
                f" five times its share (and attains {other:.0%})"
            )
            self.say(f"neighbour {name}", text, [each.lost for each in found], wanted=5.0)


def replace_load(spot: Spot, load: float) -> Spot:
    """Return a spot at another load."""
    return Spot(scenario=spot.scenario, load=load, count=spot.count)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", default="LeastHarm")
    parser.add_argument("--scenarios", nargs="*", default=["S2", "S3", "S6"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[11, 12, 13])
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--only", nargs="*", default=["lengths", "speed", "scale", "burst", "neighbour"])
    given = parser.parse_args()
    bench = Bench(
        ours=Policy.named(given.ours),
        scenarios=given.scenarios,
        seeds=given.seeds,
        load=given.load,
        count=given.count,
    )
    parts: dict[str, Callable[[], None]] = {
        "lengths": bench.lengths,
        "speed": bench.speed,
        "scale": bench.scale,
        "burst": bench.burst,
        "neighbour": bench.neighbour,
    }
    for name in given.only:
        parts[name]()
    print(json.dumps(bench.found))


if __name__ == "__main__":
    main()
