"""What a laptop has to run for a set of resources: emulated instances and their command lines.

Pure: resources in, command lines out. The command line is the one of `vllm serve`, as a pod's template will have
it, plus what only the emulator knows (the GPU whose time it keeps, the answer book, the time scale).
"""

import json
from dataclasses import dataclass
from pathlib import Path

from hexflow_api import GPUPool, Profile, Resources, profile_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Name the place of one emulated instance; whoever sits there may be restarted under a new id."""

    pool: str
    index: int

    def __str__(self) -> str:
        """Return the name that its log lines carry."""
        return f"{self.pool}-{self.index}"


def seats(resources: Resources, *, book: Path, time_scale: float) -> dict[Seat, tuple[str, ...]]:
    """Return the arguments of each emulated instance, its port left out.

    Raises ResourceError where a pool's GPU and model have no profile.
    """
    return {
        Seat(pool=pool.name, index=index): emulator_arguments(
            pool, profile=profile_of(pool, resources), book=book, time_scale=time_scale
        )
        for pool in resources.pools
        if pool.spec.source == "Emulated"
        for index in range(pool.spec.effective_replicas)
    }


def emulator_arguments(pool: GPUPool, *, profile: Profile, book: Path, time_scale: float) -> tuple[str, ...]:
    """Return the arguments of `hexflow emulate` for one instance of a pool, its port left out."""
    spec = pool.spec
    arguments = ["serve", spec.model.name, "--gpu", spec.gpu_type, "--book", str(book)]
    arguments += ["--time-scale", f"{time_scale:g}", "--profile", json.dumps(profile.coefficients())]
    if spec.tensor_parallel_size is not None:
        arguments += ["--tensor-parallel-size", str(spec.tensor_parallel_size)]
    if spec.max_model_len is not None:
        arguments += ["--max-model-len", str(spec.max_model_len)]
    if spec.max_num_seqs is not None:
        arguments += ["--max-num-seqs", str(spec.max_num_seqs)]
    if spec.priority_scheduling:
        arguments += ["--scheduling-policy", "priority"]
    arguments.append("--enable-prompt-tokens-details")  # so that answers tell what the prefix cache spared
    arguments.append("--enable-prefix-caching" if spec.prefix_caching else "--no-enable-prefix-caching")
    return tuple(arguments)
