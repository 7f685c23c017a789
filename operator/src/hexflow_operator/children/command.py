"""The command line of one instance: that of `vllm serve`, for the real engine and the emulated one alike."""

import json
from dataclasses import dataclass
from typing import Any, Final

from hexflow_api import GPUPool, Profile

DRAIN_SECONDS: Final = 120
"""Seconds that running calls get to end after SIGTERM (`--shutdown-timeout`)."""
WEIGHTS_PATH: Final = "/weights"
"""Where the weights of a claim or an image are mounted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Say where an engine reads its weights: what it is told, and the volume it needs for that."""

    location: str
    """What `vllm serve` is told: a model's name, an address or a path."""
    volume: dict[str, Any] | None = None
    """The source of the volume at WEIGHTS_PATH, as Kubernetes has it."""
    sub_path: str | None = None


def weights_of(pool: GPUPool) -> Weights:
    """Return where the pool's weights are.

    ``hf://`` is Hugging Face, which needs no volume; ``s3://`` is streamed by the engine; ``pvc://claim/path`` is
    mounted read-only; ``oci://`` is an image volume, which the cluster must support.
    """
    source = pool.spec.model.source
    if source is None:
        return Weights(location=pool.spec.model.name)
    scheme, _, rest = source.partition("://")
    if scheme == "hf":
        return Weights(location=rest)
    if scheme == "pvc":
        claim, _, path = rest.partition("/")
        volume = {"persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
        return Weights(location=WEIGHTS_PATH, volume=volume, sub_path=path.strip("/") or None)
    if scheme == "oci":
        return Weights(
            location=WEIGHTS_PATH, volume={"image": {"reference": rest, "pullPolicy": "IfNotPresent"}}
        )
    return Weights(location=source)


def engine_arguments(pool: GPUPool, *, profile: Profile, port: int) -> list[str]:
    """Return the arguments of `vllm`, the pool's own last, so that they win."""
    location = weights_of(pool).location
    own = list(pool.spec.engine.args) if pool.spec.engine else []
    arguments = [*_shared(pool, location, port=port), "--max-num-seqs", str(profile.slots)]
    if location.startswith("s3://") and "--load-format" not in own:
        arguments += ["--load-format", "runai_streamer"]
    return [*arguments, *own]


def emulator_arguments(pool: GPUPool, *, profile: Profile, port: int) -> list[str]:
    """Return the arguments of the emulator.

    A profile of the built-in table is left to the emulator's own lookup, so that a better table does not restart pods.
    """
    spec = pool.spec
    arguments = [*_shared(pool, spec.model.name, port=port), "--gpu", spec.gpu_type]
    if spec.max_num_seqs is not None:
        arguments += ["--max-num-seqs", str(spec.max_num_seqs)]
    if spec.profile and spec.profile.builtin:
        arguments += ["--profile", spec.profile.builtin]
    elif spec.profile:
        arguments += ["--profile", json.dumps(profile.coefficients(), separators=(",", ":"))]
    return [*arguments, *(spec.engine.args if spec.engine else ())]


def _shared(pool: GPUPool, location: str, *, port: int) -> list[str]:
    spec = pool.spec
    arguments = ["serve", location, "--served-model-name", spec.model.name, "--port", str(port)]
    if spec.effective_tensor_parallel_size > 1:
        arguments += ["--tensor-parallel-size", str(spec.effective_tensor_parallel_size)]
    if spec.max_model_len is not None:
        arguments += ["--max-model-len", str(spec.max_model_len)]
    if spec.priority_scheduling:
        arguments += ["--scheduling-policy", "priority"]
    arguments.append("--enable-prefix-caching" if spec.prefix_caching else "--no-enable-prefix-caching")
    # so that answers tell what the prefix cache spared, and a pod that goes lets its calls end
    return [*arguments, "--enable-prompt-tokens-details", "--shutdown-timeout", str(DRAIN_SECONDS)]
