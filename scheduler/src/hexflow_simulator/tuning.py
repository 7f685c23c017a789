"""The result of tuning: what was found, what it is worth, and what it was found on.

Frozen records; ``tune`` makes them, commands and the tuner in a cluster show and keep them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from hexflow_simulator.measure import Spread
from hexflow_simulator.objective import Objective


class Verdict(StrEnum):
    """Say what a run of tuning came to."""

    TUNED = "Tuned"
    """A better value was found; ``parameters`` holds it."""
    NO_CHANGE = "NoChange"
    """Nothing is better by more than noise and than what a change must bring."""
    TOO_FEW_QUERIES = "TooFewQueries"
    """The trace is too thin, or too old, to learn from."""
    NOTHING_TO_TUNE = "NothingToTune"
    """The policy has no parameter that is open to tuning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """Say which parameter is open to tuning, and how far."""

    name: str
    low: float
    high: float
    max_step: float | None = None
    """Most that it may change in one run; None for no such bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Say when a change is worth making."""

    min_queries: int = 100
    """Queries of the workflow without which nothing is tuned."""
    min_improvement: float = 0.03
    """Share by which the objective must get better."""
    window_seconds: float | None = None
    """Age, against the last query of the trace, of the oldest that counts."""
    max_age_seconds: float | None = None
    """Age of the trace's last query from which nothing is learned from it."""
    most_queries: int = 2000
    """The newest ones that are played; more cost time and tell little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Say what a value of the parameter reached on the trace as it was recorded."""

    value: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Say what another policy, with its defaults, would have reached on the same trace and others like it."""

    policy: str
    score: Spread
    gain: Spread
    """Against the policy in force with its values before this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedFit:
    """Say how fast an instance was against its profile, as the trace shows it."""

    instance_id: str
    pool: str
    gpu_type: str
    calls: int
    prefill: float
    """How many times as long as the profile says prefilling took; 1 where too little is known."""
    decode: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """Name what was learned from."""

    sha256: str
    """Of the queries that were played: arrivals and lengths."""
    queries: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """Report a run of tuning."""

    verdict: Verdict
    message: str
    """One sentence for a person: what was found, or what is lacking."""
    policy: str
    objective: Objective
    workflow: str = ""
    parameter: str | None = None
    """The parameter that was looked at."""
    before: Mapping[str, float] = field(default_factory=dict)
    """All values of the policy's parameters that were in force."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """All values that should be in force now: those of before unless the verdict is TUNED."""
    score_before: Spread | None = None
    """Of the objective, over traffic like that of the trace."""
    score: Spread | None = None
    gain: Spread | None = None
    """Share by which the best value within bounds, taken or not, is better; pair by pair."""
    proposed: float | None = None
    """The best value within bounds, or a step towards it, whether or not it was worth taking."""
    curve: tuple[Point, ...] = ()
    advice: tuple[Advice, ...] = ()
    """The best policy first."""
    speeds: tuple[SpeedFit, ...] = ()
    trace: TraceFacts | None = None

    @property
    def changed(self) -> bool:
        """Whether another value should come into force."""
        return self.verdict is Verdict.TUNED

    def to_data(self) -> dict[str, Any]:
        """Return all of it as plain data (JSON)."""
        return asdict(self)

    def as_parameters(self, *, when: str, mode: str) -> dict[str, Any]:
        """Return what the ConfigMap ``<workflow>-policy`` holds of it: the value, and where it is from.

        Of all values of the policy only the one that was tuned: the others are the resource's to change.
        ``when`` is the instant as Kubernetes writes it.
        """
        return {
            "parameters": {} if self.parameter is None else {self.parameter: self.parameters[self.parameter]},
            "since": when,
            "mode": mode,
            "policy": self.policy,
            "objective": str(self.objective),
            "gain": None if self.gain is None else self.gain.median,
            "trace": None if self.trace is None else self.trace.sha256,
        }
