"""Profiles: how fast one instance of a model on a kind of GPU is.

The five times and two capacities are those of the kernel, the simulator and the emulator. The built-in
table is data (``data/profiles.json``, fitted by ``crds/fit_profiles.py``); this module reads it, picks
from it, and estimates from data sheets where it has no row.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Final

from pydantic import Field, Strict

from hexflow_api.architecture import Architecture, architecture_of
from hexflow_api.gpu import Gpu, gpu_named
from hexflow_api.meta import ResourceModel

Time = Annotated[float, Strict(), Field(ge=0, le=1000)]

DEFAULT_SLOTS: Final = 128
"""Calls that run at once where nobody says: vLLM's own default is this or more."""
USABLE_MEMORY: Final = 0.9
"""Share of a GPU's memory that an engine takes (vLLM's ``gpu_memory_utilization``)."""
RUNTIME_BYTES: Final = 1.5e9
"""Memory of one GPU for activations and graphs."""
REACHED_FLOPS: Final = 0.7
"""Share of a data sheet's arithmetic that prefilling reaches."""
NVLINK_BANDWIDTH: Final = 200e9
"""Bytes per second between GPUs that NVLink joins."""
PCIE_BANDWIDTH: Final = 3.6e9
"""Bytes per second of an all-reduce between GPUs on PCIe alone, fitted to the 4 L40S of the built-in table."""


class InlineProfile(ResourceModel):
    """Hold the coefficients of the linear step model of an engine.

    One step with ``batch`` running calls, ``context`` tokens attended to in all, and a prefill chunk of
    ``chunk`` tokens at depth ``depth`` takes ``t0 + t1*batch + t2*context + chunk*(c1 + c2*depth)`` seconds.
    """

    t0: Annotated[float, Strict(), Field(gt=0, le=1000)]
    """Seconds of a decode step whatever the batch."""
    t1: Time
    """Seconds a step grows by for each running call."""
    t2: Time
    """Seconds a step grows by for each token of context."""
    c1: Time
    """Seconds to prefill one prompt token."""
    c2: Time
    """Seconds that prefilling a token grows by for each token before it."""
    kv_tokens: Annotated[int, Strict(), Field(ge=256, le=10**12)]
    """Tokens that fit the KV cache."""
    slots: Annotated[int, Strict(), Field(ge=1, le=65_536)] = DEFAULT_SLOTS
    """Calls that run at once."""

    def coefficients(self) -> dict[str, Any]:
        """Return the seven numbers by the kernel's names: ``hexflow_scheduler.Profile(**p.coefficients())``."""
        return {
            "t0": self.t0,
            "t1": self.t1,
            "t2": self.t2,
            "c1": self.c1,
            "c2": self.c2,
            "kv_tokens": self.kv_tokens,
            "slots": self.slots,
        }


class Profile(InlineProfile):
    """A speed with a name and a source."""

    name: str = "inline"
    """Name that status, metrics and reports show."""
    source: str = ""
    """Where the figures are from."""
    estimated: bool = False
    """Whether the figures are reckoned rather than measured or simulated for this GPU and model."""


class BuiltinProfile(Profile):
    """A row of the built-in table."""

    gpu: str
    model: str
    tensor_parallel: int


@cache
def builtin_profiles() -> Mapping[str, BuiltinProfile]:
    """Return the built-in table by name."""
    table = json.loads((files(__package__) / "data" / "profiles.json").read_text(encoding="utf-8"))
    profiles = (BuiltinProfile.model_validate(row) for row in table)
    return {profile.name: profile for profile in profiles}


def builtin_profile(gpu_type: str, model_name: str, tensor_parallel: int) -> Profile | None:
    """Return the built-in profile of a GPU, a model and a parallel size; None where the table has no row.

    The GPU is matched by any alias, the model by family and size.
    """
    gpu, model = gpu_named(gpu_type), architecture_of(model_name)
    if gpu is None or model is None:
        return None
    return builtin_profiles().get(f"{gpu.name}-{model.name}-tp{tensor_parallel}".lower())


def estimated_profile(gpu_type: str, model_name: str, tensor_parallel: int) -> Profile | None:
    """Return a profile reckoned from data sheets; None if the GPU or the model's size is not known, or it does not fit."""
    gpu, model = gpu_named(gpu_type), architecture_of(model_name)
    if gpu is None or model is None or kv_token_capacity(gpu, model, tensor_parallel) < 1024:
        return None
    return data_sheet_profile(gpu, model, tensor_parallel)


def kv_token_capacity(gpu: Gpu, model: Architecture, tensor_parallel: int) -> int:
    """Return the tokens whose keys and values fit beside the weights; below zero where these do not fit."""
    free = tensor_parallel * (gpu.memory_bytes * USABLE_MEMORY - RUNTIME_BYTES) - model.weight_bytes
    return int(free / model.kv_bytes_per_token)


def data_sheet_profile(gpu: Gpu, model: Architecture, tensor_parallel: int) -> Profile:
    """Reckon a profile from data sheets, right within a factor of about 1.5.

    Decoding reads all weights for every step at 1 / 1.1 of the memory's bandwidth, and 2 ms go to the rest.
    Prefilling reaches 70 % of the arithmetic; with several GPUs each layer's activations cross the link twice,
    which dominates where there is only PCIe (the built-in table's rows for 4 L40S come out within 2 %).
    """
    bandwidth = gpu.bandwidth * tensor_parallel
    flops = gpu.flops * tensor_parallel * REACHED_FLOPS
    crossing = 2 * 2 * model.layers * model.hidden_size * 2 * (tensor_parallel - 1) / tensor_parallel
    token = 2 * model.parameters / flops + crossing / (NVLINK_BANDWIDTH if gpu.linked else PCIE_BANDWIDTH)
    return Profile(
        name=f"estimate-{gpu.name}-{model.name}-tp{tensor_parallel}".lower(),
        source="reckoned from data sheets",
        estimated=True,
        t0=_rounded(1.1 * model.weight_bytes / bandwidth + 0.002),
        t1=_rounded(token + 50e-6),
        t2=_rounded(model.kv_bytes_per_token / bandwidth),
        c1=_rounded(token),
        c2=_rounded(4 * model.layers * model.hidden_size / flops),
        kv_tokens=max(256, kv_token_capacity(gpu, model, tensor_parallel)),
    )


UNKNOWN: Final = Profile(
    name="unknown",
    source="assumed for an engine of unknown speed, until its own calls have shown it",
    estimated=True,
    t0=0.025,
    t1=0.0003,
    t2=5e-8,
    c1=0.0002,
    c2=2e-9,
    kv_tokens=100_000,
)
"""What is assumed of a real engine about which nothing is known; the kernel corrects it call by call."""


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
