"""A GPU is known by the names that vendors, drivers, clouds and Kubernetes give it."""

import pytest

from hexflow_api import GPUS, gpu_named


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A100-80GB", "A100-80GB"),
        ("A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA-A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("A100-SXM-80GB", "A100-80GB"),
        ("nvidia_a100_sxm4_80gb", "A100-80GB"),
        ("NVIDIA-A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA-A100-SXM4-80GB-SHARED", "A100-80GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100-SXM"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("NVIDIA-H200", "H200-SXM"),
        ("NVIDIA-L40S", "L40S"),
        ("NVIDIA-RTX-A6000", "A6000"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("Tesla A100 80GB", "A100-80GB"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", None),
        ("MI300X", None),
        ("", None),
    ],
)
def test_a_gpu_is_found_by_its_aliases(text: str, name: str | None) -> None:
    found = gpu_named(text)
    assert (found.name if found else None) == name


def test_no_two_gpus_share_a_name() -> None:
    names = [name.lower() for gpu in GPUS for name in (gpu.name, *gpu.aliases)]
    assert len(names) == len(set(names))
