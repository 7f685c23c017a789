"""An instance: one inference server that can be sent calls, as the kernel sees it."""

from dataclasses import dataclass
from enum import StrEnum

from hexflow_scheduler.profile import Profile


class InstanceState(StrEnum):
    """Say what may be asked of an instance."""

    READY = "Ready"
    """Takes new calls."""
    UNREADY = "Unready"
    """Takes no new calls for now (loading, failing, breaker open); what waits for it may move away."""
    DRAINING = "Draining"
    """Finishes what runs and takes nothing new."""
    GONE = "Gone"
    """Does not exist any more; what ran on it has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Describe an instance to the kernel; telling it again with other values is how it changes."""

    instance_id: str
    """Unique for the life of the server (a pod's UID): a restarted server has another."""
    pool: str
    gpu_type: str
    models: frozenset[str]
    """Names of the models it serves."""
    profile: Profile
    state: InstanceState = InstanceState.READY
    max_context: int | None = None
    """Longest prompt plus output it takes, in tokens; None where unknown."""
    prefix_caching: bool = True
    """Whether its engine keeps leading blocks of prompts for the calls to come."""
    takes_priority: bool = False
    """Whether its engine orders its own queue by the body's ``priority``."""
