"""Fleets by name: which GPUs, how many, and how fast one instance of a model is on each.

Profiles are the built-in ones. One differs: under ``L40S-measured`` stands an L40S whose speed with a 70B model is
that of an A100 times the ratios that HexGen-Flow's authors measured (2.8 for prefill, 1.6 for decode), where
computed tables have 7 for prefill.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType

from hexflow_api import builtin_profile
from hexflow_scheduler import Instance, Profile
from hexflow_simulator.complaint import InvalidWorkload
from hexflow_simulator.fleet import SimulatedInstance
from hexflow_simulator.request import EngineOptions, EngineOrder

L40S_MEASURED = "L40S-measured"
_MEASURED_RATIOS = (2.8, 1.6)


@dataclass(frozen=True, slots=True)
class Model:
    """Name a size of model, and over how many GPUs an instance of it is spread."""

    size: str
    name: str
    tensor_parallel: int
    of_gpu: Mapping[str, int] = field(default_factory=dict)
    """Where another number is usual: 32B takes two GPUs of 80 GB, four of 48 GB without NVLink."""

    def on(self, gpu: str) -> int:
        """Return the GPUs of one instance."""
        return self.of_gpu.get(gpu, self.tensor_parallel)


MODELS: Mapping[str, Model] = MappingProxyType(
    {
        model.size: model
        for model in (
            Model("70B", "Meta-Llama-3.1-70B", 4),
            Model("32B", "Qwen2.5-Coder-32B", 2, {"L40S": 4}),
            Model("7B", "Qwen2.5-Coder-7B", 1),
        )
    }
)
"""Models by size."""

Gpus = tuple[tuple[str, int], ...]
"""GPU and number of instances."""

FLEETS: Mapping[str, Gpus] = MappingProxyType(
    {
        "het1": (("A100-80GB", 2), ("A6000", 2)),
        "het2": (("A100-80GB", 2), ("A6000", 1), (L40S_MEASURED, 1)),
        "het3": (("H100-SXM", 1), ("A100-80GB", 2), ("L40S", 2)),
        "homo": (("A100-80GB", 4),),
        "mix16": (("H100-SXM", 3), ("A100-80GB", 6), ("A6000", 4), ("L40S", 3)),
        "fleet64": (("H100-SXM", 8), ("A100-80GB", 24), ("A6000", 20), (L40S_MEASURED, 12)),
    }
)
"""Fleets by name: the study's five, and one of 64."""


@cache
def profile(gpu: str, size: str) -> Profile:
    """Return the speed of one instance; raises InvalidWorkload where no profile is known."""
    model = MODELS[size]
    if gpu == L40S_MEASURED:
        if size != "70B":
            return profile("L40S", size)
        prefill, decode = _MEASURED_RATIOS
        slowed = profile("A100-80GB", size).slowed(prefill=prefill, decode=decode)
        return replace(slowed, kv_tokens=profile("L40S", size).kv_tokens)
    found = builtin_profile(gpu, model.name, model.on(gpu))
    if found is None:
        raise InvalidWorkload(f"no profile is known of {model.name} on {model.on(gpu)} {gpu}")
    return Profile(**found.coefficients())


def instances(
    gpus: Sequence[tuple[str, int]], size: str, *, slots: int | None = None, prefix: str = ""
) -> tuple[SimulatedInstance, ...]:
    """Return the instances of a fleet that serve a size of model, named ``a100-80gb-0`` and so on."""
    return tuple(
        _instance(gpu, number, size, slots=slots, prefix=prefix)
        for gpu, count in gpus
        for number in range(count)
    )


def _instance(gpu: str, number: int, size: str, *, slots: int | None, prefix: str) -> SimulatedInstance:
    speed = profile(gpu, size)
    pool = f"{prefix}{gpu.lower()}"
    return SimulatedInstance(
        instance=Instance(
            instance_id=f"{pool}-{number}",
            pool=pool,
            gpu_type=gpu.removesuffix("-measured"),
            models=frozenset({MODELS[size].name}),
            profile=speed if slots is None else replace(speed, slots=slots),
            takes_priority=True,
        ),
        options=EngineOptions(order=EngineOrder.PRIORITY),
    )
