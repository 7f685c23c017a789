"""Shapes of the language models that profiles are known for, found by a model's name.

Only the shape matters for speed: a fine-tuned model runs as fast as the one that it was made from.
"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Hold the sizes of a model that set its speed and its memory."""

    name: str
    parameters: float
    layers: int
    kv_heads: int
    head_size: int
    hidden_size: int

    weight_bits: int = 16
    """Bits of one weight; below 16 for quantised models."""

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights; quantised ones carry about an eighth more for scales."""
        overhead = 1.0 if self.weight_bits == 16 else 1.125
        return self.parameters * self.weight_bits / 8 * overhead

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values of one token, in 16 bit."""
        return 2 * 2 * self.layers * self.kv_heads * self.head_size


ARCHITECTURES: Final = (
    Architecture(
        name="qwen2.5-1.5b", parameters=1.54e9, layers=28, kv_heads=2, head_size=128, hidden_size=1536
    ),
    Architecture(
        name="qwen2.5-3b", parameters=3.09e9, layers=36, kv_heads=2, head_size=128, hidden_size=2048
    ),
    Architecture(
        name="qwen2.5-7b", parameters=7.62e9, layers=28, kv_heads=4, head_size=128, hidden_size=3584
    ),
    Architecture(
        name="qwen2.5-14b", parameters=14.8e9, layers=48, kv_heads=8, head_size=128, hidden_size=5120
    ),
    Architecture(
        name="qwen2.5-32b", parameters=32.8e9, layers=64, kv_heads=8, head_size=128, hidden_size=5120
    ),
    Architecture(
        name="qwen2.5-72b", parameters=72.7e9, layers=80, kv_heads=8, head_size=128, hidden_size=8192
    ),
    Architecture(
        name="llama-3.1-8b", parameters=8.03e9, layers=32, kv_heads=8, head_size=128, hidden_size=4096
    ),
    Architecture(
        name="llama-3.1-70b", parameters=70.6e9, layers=80, kv_heads=8, head_size=128, hidden_size=8192
    ),
)

_FAMILIES: Final = (
    # Text-to-SQL models that were made from Qwen2.5-Coder.
    (re.compile(r"qwen-?2\.5|qwencoder|omnisql|arctic-text2sql-r1"), "qwen2.5"),
    (re.compile(r"llama-?3(\.[13])?-"), "llama-3.1"),
)
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)b(?![a-z0-9])")
_FOUR_BITS = re.compile(r"awq|gptq|int4|w4a16|4bit|q4|nvfp4")
_EIGHT_BITS = re.compile(r"fp8|int8|w8a8|8bit|q8")


def architecture_of(model: str) -> Architecture | None:
    """Return the shape of the model that ``model`` names, such as ``Qwen/Qwen2.5-Coder-32B-Instruct``.

    Found by family and size. A size without a known family gets the nearest known shape, scaled to the
    size and called ``size-13b`` and the like; a name without a size gets None.
    """
    name = model.rsplit("/", 1)[-1].lower().replace("_", "-")
    if (found := _SIZE.search(name)) is None:
        return None
    size = found.group(1)
    bits = 4 if _FOUR_BITS.search(name) else 8 if _EIGHT_BITS.search(name) else 16
    for pattern, family in _FAMILIES:
        known = _BY_NAME.get(f"{family}-{size}b")
        if known and pattern.search(name):
            return _with(known, name=known.name, parameters=known.parameters, bits=bits)
    parameters = float(size) * 1e9
    nearest = min(ARCHITECTURES, key=lambda each: abs(each.parameters - parameters))
    return _with(nearest, name=f"size-{size}b", parameters=parameters, bits=bits)


def _with(architecture: Architecture, *, name: str, parameters: float, bits: int) -> Architecture:
    return Architecture(
        name=name if bits == 16 else f"{name}-{bits}bit",
        parameters=parameters,
        layers=architecture.layers,
        kv_heads=architecture.kv_heads,
        head_size=architecture.head_size,
        hidden_size=architecture.hidden_size,
        weight_bits=bits,
    )


_BY_NAME = {architecture.name: architecture for architecture in ARCHITECTURES}
