"""GPUs by name: the aliases under which one is known, and what its data sheet says.

A resource may name a GPU as its vendor, the driver, the cloud or GPU feature discovery does.
"""

import re
from dataclasses import dataclass
from typing import Final

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """Hold what a data sheet says of a GPU."""

    name: str
    """Our name for it, used in profiles and labels."""
    memory_mib: int
    """Memory as the driver reports it."""
    bandwidth: float
    """Bytes per second from its memory."""
    flops: float
    """Dense bf16 operations per second."""
    linked: bool
    """Whether several of them are usually joined by NVLink."""
    aliases: tuple[str, ...] = ()

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory."""
        return self.memory_mib * _MIB


GPUS: Final = (
    Gpu(
        name="A100-80GB",
        memory_mib=81_920,
        bandwidth=2.039e12,
        flops=312e12,
        linked=True,
        aliases=("A100", "A100-SXM", "A100-SXM4-80GB", "A100-SXM-80GB", "A100-80GB-PCIe", "A100-PCIe-80GB"),
    ),
    Gpu(
        name="A100-40GB",
        memory_mib=40_960,
        bandwidth=1.555e12,
        flops=312e12,
        linked=True,
        aliases=("A100-SXM4-40GB", "A100-SXM-40GB", "A100-PCIe-40GB"),
    ),
    Gpu(
        name="H100-SXM",
        memory_mib=81_559,
        bandwidth=3.35e12,
        flops=989e12,
        linked=True,
        aliases=("H100", "H100-80GB", "H100-80GB-HBM3", "H100-SXM5-80GB", "H100-SXM-80GB"),
    ),
    Gpu(
        name="H100-PCIe",
        memory_mib=81_559,
        bandwidth=2.0e12,
        flops=756e12,
        linked=True,
        aliases=("H100-80GB-PCIe", "H100-PCIe-80GB"),
    ),
    Gpu(
        name="H200-SXM",
        memory_mib=143_771,
        bandwidth=4.8e12,
        flops=989e12,
        linked=True,
        aliases=("H200", "H200-141GB", "H200-SXM-141GB"),
    ),
    Gpu(
        name="B200",
        memory_mib=183_359,
        bandwidth=8.0e12,
        flops=2250e12,
        linked=True,
        aliases=("B200-SXM", "B200-180GB"),
    ),
    Gpu(name="L40S", memory_mib=46_068, bandwidth=864e9, flops=362e12, linked=False, aliases=("L40S-48GB",)),
    Gpu(name="L40", memory_mib=46_068, bandwidth=864e9, flops=181e12, linked=False, aliases=("L40-48GB",)),
    Gpu(name="L4", memory_mib=23_034, bandwidth=300e9, flops=121e12, linked=False, aliases=("L4-24GB",)),
    Gpu(
        name="A6000",
        memory_mib=49_140,
        bandwidth=768e9,
        flops=155e12,
        linked=True,
        aliases=("RTX-A6000", "A6000-48GB", "RTXA6000"),
    ),
    Gpu(
        name="RTX-6000-Ada",
        memory_mib=49_140,
        bandwidth=960e9,
        flops=182e12,
        linked=False,
        aliases=("RTX-6000-Ada-Generation",),
    ),
    Gpu(name="A10", memory_mib=23_028, bandwidth=600e9, flops=125e12, linked=False, aliases=("A10-24GB",)),
    Gpu(name="A10G", memory_mib=23_028, bandwidth=600e9, flops=70e12, linked=False, aliases=("A10G-24GB",)),
    Gpu(
        name="RTX-4090",
        memory_mib=24_564,
        bandwidth=1008e9,
        flops=165e12,
        linked=False,
        aliases=("4090", "GeForce-RTX-4090", "RTX4090"),
    ),
    Gpu(
        name="RTX-3090",
        memory_mib=24_576,
        bandwidth=936e9,
        flops=71e12,
        linked=True,
        aliases=("3090", "GeForce-RTX-3090", "RTX3090"),
    ),
)
"""Every GPU that HexFlow knows, with the makers' data sheets as source."""


def gpu_named(text: str) -> Gpu | None:
    """Return the GPU that ``text`` names under any alias, whatever its case; None if none is known.

    A slice of a GPU (MIG) is not that GPU.
    """
    return _BY_ALIAS.get(_key(text))


def _key(text: str) -> str:
    """Fold ``NVIDIA-A100-SXM4-80GB`` (GPU feature discovery), ``Tesla A100 80GB`` and the like."""
    folded = re.sub(r"[\s_-]+", "-", text.strip().lower())
    return re.sub(r"^(nvidia-)?(tesla-)?", "", folded).removesuffix("-shared")


_BY_ALIAS = {_key(alias): gpu for gpu in GPUS for alias in (gpu.name, *gpu.aliases)}
