"""A fleet from the resources that people have anyway: GPUPools, as `kubectl apply` and `hexflow up` take them.

Four lines are enough for a pool::

    apiVersion: hexflow.dev/v1alpha1
    kind: GPUPool
    metadata: {name: a100}
    spec: {gpuType: A100-80GB, model: {name: Qwen/Qwen2.5-Coder-32B-Instruct}, tensorParallelSize: 2, replicas: 2}

Where the servers of a pool are does not matter here; how fast they are is its profile, as in the router.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from hexflow_api import GPUPool, Problem, ResourceError, Resources, load_resources, profile_of
from hexflow_api.profile import UNKNOWN
from hexflow_scheduler import Instance, Profile
from hexflow_simulator.fleet import SimulatedInstance, options_of

_PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFile:
    """The instances of some pools, and what their owner should know about them."""

    instances: tuple[SimulatedInstance, ...]
    resources: Resources
    """What the files held, workflows included."""
    notes: tuple[str, ...]
    """Profiles that are estimates, pools without instances, objects that were passed over."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that are served, in the order of their pools."""
        return tuple(
            dict.fromkeys(model for each in self.instances for model in sorted(each.instance.models))
        )

    @property
    def profiles(self) -> list[Profile]:
        """The true speed of each instance."""
        return [each.true_profile for each in self.instances]


def read_fleet(paths: _PathLike | Iterable[_PathLike]) -> FleetFile:
    """Return the fleet of the GPUPools in YAML files or folders; raises ResourceError with all that is wrong."""
    resources = load_resources(paths)
    instances: list[SimulatedInstance] = []
    problems: list[Problem] = []
    notes = list(resources.notes)
    for pool in resources.pools:
        try:
            found = profile_of(pool, resources)
        except ResourceError as error:
            problems += error.problems
            continue
        if found.name == UNKNOWN.name:
            problems.append(_unknown(pool))
            continue
        if found.estimated:
            notes.append(f"GPUPool {pool.name}: its speed is an estimate ({found.source})")
        if not pool.spec.effective_replicas:
            notes.append(f"GPUPool {pool.name}: no instances (it is suspended, or replicas is 0)")
        profile = Profile(**found.coefficients())
        instances += (_instance(pool, profile, number) for number in range(pool.spec.effective_replicas))
    if not problems and not instances:
        problems.append(
            Problem(message="there is no GPUPool with an instance; add one, or raise its replicas")
        )
    if problems:
        raise ResourceError(problems)
    return FleetFile(instances=tuple(instances), resources=resources, notes=tuple(notes))


def _instance(pool: GPUPool, profile: Profile, number: int) -> SimulatedInstance:
    spec = pool.spec
    instance = Instance(
        instance_id=f"{pool.name}-{number}",
        pool=pool.name,
        gpu_type=spec.gpu_type,
        models=frozenset({spec.model.name}),
        profile=profile,
        max_context=spec.max_model_len,
        prefix_caching=spec.prefix_caching,
        takes_priority=spec.priority_scheduling,
    )
    return SimulatedInstance(instance=instance, options=options_of(instance))


def _unknown(pool: GPUPool) -> Problem:
    spec = pool.spec
    return Problem(
        object=f"GPUPool {pool.name}",
        path="spec.profile",
        message=(
            f"nothing is known of the speed of {spec.model.name} on {spec.effective_tensor_parallel_size} x"
            f" {spec.gpu_type}, and a simulation must know it; name a GPU and a model that are known, or give"
            " spec.profile.inline"
        ),
    )
