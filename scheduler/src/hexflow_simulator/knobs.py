"""Knobs: the systems that a benchmark compares with, as policies, and the settings that are tried of each.

A baseline is as good as its tuning, so a benchmark tries every setting on seeds of its own and reports the
best. Where nothing is listed there is nothing to set. ``docs/reference/policies.md`` says what each means.
"""

from collections.abc import Mapping
from itertools import product
from typing import Final

from hexflow_scheduler import Policy

BASELINES: Final[Mapping[str, str]] = {
    "vLLM behind a Service": "RoundRobin",
    "TGI, least outstanding": "LeastOutstanding",
    "Ray Serve": "PowerOfTwo",
    "Ray Serve LLM": "PrefixPowerOfTwo",
    "VTC": "LeastOutstanding+VTC",
    "QLM": "ShortestQueue+QLM",
    "LLF per call": "EarliestFinish+LeastLaxity",
    "HexGen-Flow as printed": "HexGenFlowLiteral",
    "HexGen-Flow": "HexGenFlow",
    "HexGen-Flow, queue alone": "RoundRobin+Urgency",
    "HexGen-Flow, dispatch alone": "HexGenFlow+FCFS",
    "Shortest queue in seconds": "ShortestQueue",
    "Earliest finish": "EarliestFinish",
    "llm-d": "StickyUntilSaturated",
    "AIBrix SLO": "MostRelaxed",
    "Autellix (ATLAS)": "LeastOutstanding+LeastAttained",
    "HexAGenT": "EarliestFinish+ProjectedRatio",
    "GoodServe": "JustEnough",
}
"""Systems, papers and plain ideas, each as the policy that stands for it."""

GRID: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    # Only (1 - alpha) * beta / alpha matters for the order of instances, so alpha stays where it is.
    "HexGenFlow": {"beta": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)},
    "HexGenFlowLiteral": {"beta": (1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0)},
    "PrefixPowerOfTwo": {"imbalance": (2.0, 4.0, 10.0, 20.0, 1000.0), "match": (0.1, 0.5)},
    "StickyUntilSaturated": {
        "affinity": (0.4, 0.8),
        "gap": (0.03, 0.1, 0.3, 1.0, 3.0),
        "by_calls": (0.0, 1.0),
    },
    "MostRelaxed": {"share": (0.15, 0.3, 0.5, 0.7, 1.0, 1.5)},
    "JustEnough": {"share": (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)},
}
"""Values that are tried of a dispatch rule's parameters; every combination is a setting."""


def settings(name: str) -> tuple[Policy, ...]:
    """Return the settings of a policy that are tried, its defaults among them. Raises UnknownPolicy."""
    values = GRID.get(Policy.named(name).dispatch, {})
    return tuple(
        Policy.named(name, **dict(zip(values, chosen, strict=True))) for chosen in product(*values.values())
    )
