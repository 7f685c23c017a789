"""Alive and ready: what the two health paths say.

Alive means that the loop turns. Ready means that a question asked now could be answered: an instance is
known, the configuration was read, and the process is not stopping. In a cluster a router is to be reached without any
instance, too, for it says why there is none; whoever asks for that leaves the instances out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hexflow_router.configwatch import ConfigurationWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Say whether the router is ready, and why not."""

    ready: bool
    reason: str
    details: dict[str, Any]


def readiness(
    *,
    ready_instances: Sequence[str],
    known_instances: int,
    watch: ConfigurationWatch,
    policy: str,
    named_policy: str,
    draining: bool,
    listed: bool = True,
    problems: Sequence[str] = (),
    without_instances: bool = False,
) -> Readiness:
    """Judge the readiness of a router. ``policy`` is in force, ``named_policy`` is what the resources name now.

    ``listed``: whether the pods were listed, where instances are pods. ``problems``: further ones than those of the
    configuration. ``without_instances``: whether it is ready without any.
    """
    configuration = watch.current
    details: dict[str, Any] = {
        "instances": {"ready": len(ready_instances), "known": known_instances},
        "workflows": sorted(configuration.workflows),
        "pools": [pool.name for pool in configuration.fleet.pools],
        "configuration": {
            "current": watch.error is None,
            "error": watch.error,
            "problems": [*configuration.problems, *problems],
        },
        "policy": {"inForce": policy, "named": named_policy},
    }
    if draining:
        return Readiness(ready=False, reason="Stopping", details=details)
    if not watch.read or not listed:
        return Readiness(ready=False, reason="NotConfigured", details=details)
    if not ready_instances and not without_instances:
        return Readiness(ready=False, reason="NoInstance", details=details)
    return Readiness(ready=True, reason="Ready", details=details)
