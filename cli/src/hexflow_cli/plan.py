"""What a laptop has to run for a set of resources: emulated instances and their command lines.

Pure: resources in, command lines out. The command line is the one of `vllm serve`, as a pod's template will have
it, plus what only the emulator knows (the GPU whose time it keeps, the answer book, the time scale).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hexflow_api import GPUPool, profile_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Name the place of one emulated instance; whoever sits there may be restarted under a new id."""

    pool: str
    index: int

    def __str__(self) -> str:
        """Return the name that its log lines carry."""
        return f"{self.pool}-{self.index}"


def seats(pools: Sequence[GPUPool], *, book: Path, time_scale: float) -> dict[Seat, tuple[str, ...]]:
    """Return the arguments of each emulated instance, its port left out.

    Raises ResourceError where a pool's GPU and model have no profile.
    """
    return {
        Seat(pool=pool.metadata.name, index=index): emulator_arguments(pool, book=book, time_scale=time_scale)
        for pool in pools
        if pool.spec.emulated and not pool.spec.suspend
        for index in range(1 if pool.spec.replicas is None else pool.spec.replicas)
    }


def emulator_arguments(pool: GPUPool, *, book: Path, time_scale: float) -> tuple[str, ...]:
    """Return the arguments of `hexflow emulate` for one instance of a pool, its port left out."""
    spec = pool.spec
    arguments = ["serve", spec.model.name, "--gpu", spec.gpu_type, "--book", str(book)]
    arguments += ["--time-scale", f"{time_scale:g}", "--profile", json.dumps(profile_of(pool).coefficients())]
    if spec.tensor_parallel_size is not None:
        arguments += ["--tensor-parallel-size", str(spec.tensor_parallel_size)]
    if spec.max_model_len is not None:
        arguments += ["--max-model-len", str(spec.max_model_len)]
    if spec.max_num_seqs is not None:
        arguments += ["--max-num-seqs", str(spec.max_num_seqs)]
    if spec.priority_scheduling:
        arguments += ["--scheduling-policy", "priority"]
    arguments.append("--enable-prefix-caching" if spec.prefix_caching else "--no-enable-prefix-caching")
    return (*arguments, *(spec.engine.args if spec.engine else ()))
