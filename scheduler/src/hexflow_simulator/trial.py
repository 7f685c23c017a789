"""A trial: one policy on one scenario at one load with one seed, and what came of it.

Trials of a seed are paired: whatever the policy, the same queries arrive at the same instants, and the
kernel begins with the same estimates, those of an earlier sample, as a router that has been up for a while.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from time import process_time
from typing import Any

from hexflow_scheduler import Estimates, Policy
from hexflow_simulator.bounds import clairvoyant
from hexflow_simulator.measure import Figures, figures
from hexflow_simulator.scenario import Scenario, scenario_named
from hexflow_simulator.simulation import simulate

LEARNING_QUERIES = 200
LEARNING_LOAD = 0.5
LEARNING_POLICY = "LeastOutstanding"
LEARNING_SEED = 0
CLAIRVOYANT = "Clairvoyant"
"""In the place of a policy: what none can beat on the same queries (``bounds``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Name what is tried."""

    scenario: str
    load: float
    """Share of the scenario's rate at load 1."""
    policy: str
    seed: int
    parameters: tuple[tuple[str, float], ...] = ()
    """Where they differ from the policy's defaults, by name."""
    count: int | None = None
    """Queries; None for the scenario's own number."""

    @property
    def key(self) -> str:
        """A name by which the trial is found in a file of results."""
        values = ",".join(f"{name}={value:g}" for name, value in self.parameters)
        policy = f"{self.policy}({values})" if values else self.policy
        number = "" if self.count is None else f" of {self.count}"
        return f"{self.scenario} at {self.load:g} by {policy} seed {self.seed}{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """Report a trial."""

    trial: Trial
    figures: Figures
    calls: int
    cpu_seconds: float
    """Processor time of the simulation alone; of this machine, so compare within one run of the benchmark."""

    def to_data(self) -> dict[str, Any]:
        """Return plain data that ``from_data`` takes."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "TrialResult":
        """Return the result that ``to_data`` described; raises KeyError or TypeError for anything else."""
        trial = dict(data["trial"])
        trial["parameters"] = tuple((str(name), float(value)) for name, value in trial["parameters"])
        return cls(
            trial=Trial(**trial),
            figures=Figures(**data["figures"]),
            calls=data["calls"],
            cpu_seconds=data["cpu_seconds"],
        )


def run_trial(trial: Trial, scenario: Scenario | None = None) -> TrialResult:
    """Run a trial; ``scenario`` is for those that have no name. Raises InvalidWorkload, UnknownPolicy, InvalidParameter."""
    found = scenario or scenario_named(trial.scenario)
    if trial.policy == CLAIRVOYANT:
        return _bound(trial, found)
    known = learned(trial.scenario) if scenario is None else _learn(found)
    began = process_time()
    result = simulate(
        found.queries(trial.seed, load=trial.load, count=trial.count),
        found.fleet,
        Policy.named(trial.policy, **dict(trial.parameters)),
        estimates=Estimates.from_data(known),
        events=found.events(load=trial.load, count=trial.count),
    )
    return TrialResult(
        trial=trial,
        figures=figures(result.queries),
        calls=result.call_count,
        cpu_seconds=process_time() - began,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Name a scenario at a load, and the trials' size."""

    scenario: str
    load: float
    count: int | None = field(default=None)

    def trial(self, policy: str, seed: int, parameters: Mapping[str, float] | None = None) -> Trial:
        """Return a trial of this cell."""
        return Trial(
            scenario=self.scenario,
            load=self.load,
            policy=policy,
            seed=seed,
            parameters=tuple(sorted((parameters or {}).items())),
            count=self.count,
        )


def _bound(trial: Trial, scenario: Scenario) -> TrialResult:
    began = process_time()
    queries = scenario.queries(trial.seed, load=trial.load, count=trial.count)
    results = clairvoyant(queries, scenario.fleet)
    return TrialResult(
        trial=trial,
        figures=figures(results),
        calls=0,
        cpu_seconds=process_time() - began,
    )


@cache
def learned(name: str) -> dict[str, Any]:
    """Return what a kernel has learned of a named scenario that has been up for a while, as plain data."""
    return _learn(scenario_named(name))


def _learn(scenario: Scenario) -> dict[str, Any]:
    estimates = Estimates()
    simulate(
        scenario.queries(LEARNING_SEED, load=LEARNING_LOAD, count=LEARNING_QUERIES),
        scenario.fleet,
        Policy.named(LEARNING_POLICY),
        estimates=estimates,
    )
    return estimates.to_data()
