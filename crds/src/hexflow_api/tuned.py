"""The ConfigMap `<workflow>-policy`: what tuning has found. The tuner writes it; router and operator read it.

Three keys, each a JSON object: ``parameters.json`` (in force, mode Auto: the router reads it), ``recommended.json`` (mode
Recommend: the operator copies it to the status) and ``outcome.json`` (the last run). What cannot be read counts as absent.
"""

import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

IN_FORCE_KEY: Final = "parameters.json"
RECOMMENDED_KEY: Final = "recommended.json"
OUTCOME_KEY: Final = "outcome.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedParameters:
    """Hold parameters that tuning has found."""

    values: Mapping[str, float]
    since: str | None = None
    """When they were found, as Kubernetes writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Say what the last run came to."""

    reason: str
    """Tuned, TooFewQueries or RolledBack."""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """Hold what the ConfigMap says."""

    in_force: TunedParameters | None = None
    recommended: TunedParameters | None = None
    outcome: Outcome | None = None

    def as_data(self) -> dict[str, str]:
        """Return the ConfigMap's data."""
        outcome = self.outcome and {"reason": self.outcome.reason, "message": self.outcome.message}
        parts = {
            IN_FORCE_KEY: _written(self.in_force),
            RECOMMENDED_KEY: _written(self.recommended),
            OUTCOME_KEY: outcome,
        }
        return {key: json.dumps(part, sort_keys=True) for key, part in parts.items() if part is not None}


def read_tuned(config_map: Mapping[str, Any] | None) -> Tuned:
    """Return what the ConfigMap of a workflow says; nothing where there is none."""
    data = (config_map or {}).get("data") or {}
    outcome = _object(data, OUTCOME_KEY)
    reason, message = outcome.get("reason"), outcome.get("message")
    return Tuned(
        in_force=_parameters(_object(data, IN_FORCE_KEY)),
        recommended=_parameters(_object(data, RECOMMENDED_KEY)),
        outcome=Outcome(reason=reason, message=str(message or "")) if isinstance(reason, str) else None,
    )


def _parameters(found: Mapping[str, Any]) -> TunedParameters | None:
    values, since = found.get("parameters"), found.get("since")
    if not isinstance(values, dict):
        return None
    numbers = {
        name: float(value)
        for name, value in sorted(values.items())
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
    return (
        TunedParameters(values=numbers, since=since if isinstance(since, str) else None) if numbers else None
    )


def _object(data: Mapping[str, str], key: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(data.get(key) or "{}")
        if isinstance(found, dict):
            return found
    return {}


def _written(found: TunedParameters | None) -> dict[str, Any] | None:
    return None if found is None else {"parameters": dict(found.values), "since": found.since}
