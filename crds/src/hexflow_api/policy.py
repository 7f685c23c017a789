"""The names of scheduling policies that a resource may give.

Only what the kernel has may be named here. This package may not import the kernel, so the names stand in
both and a test compares them (ADR 0006). What they do is the kernel's.
"""

from typing import Final

DISPATCH_RULES: Final = {
    "LeastHarm": "Deadline",
    "HexGenFlow": "Urgency",
    "HexGenFlowLiteral": "Urgency",
    "RoundRobin": "FCFS",
    "LeastOutstanding": "FCFS",
    "PowerOfTwo": "FCFS",
    "PrefixPowerOfTwo": "FCFS",
    "ShortestQueue": "FCFS",
    "EarliestFinish": "FCFS",
    "StickyUntilSaturated": "FCFS",
    "MostRelaxed": "Urgency",
    "JustEnough": "FCFS",
}
"""Rules that pick the instance of a ready call, each with the queue rule that goes with it where none is named."""
QUEUE_RULES: Final = (
    "FCFS",
    "Urgency",
    "Deadline",
    "LatestStart",
    "LeastLaxity",
    "VTC",
    "QLM",
    "LeastAttained",
    "ProjectedRatio",
)
"""Rules that order the calls that wait at an instance."""

DEFAULT_POLICY: Final = "LeastHarm"

POLICIES: Final[dict[str, tuple[str, str]]] = {
    **{dispatch: (dispatch, queue) for dispatch, queue in DISPATCH_RULES.items()},
    **{f"{dispatch}+{queue}": (dispatch, queue) for dispatch in DISPATCH_RULES for queue in QUEUE_RULES},
}
"""Each name that ``scheduling.policy`` may have -> its dispatch rule and queue rule."""

POLICY_NAME: Final = rf"^({'|'.join(DISPATCH_RULES)})(\+({'|'.join(QUEUE_RULES)}))?$"
"""The same as a pattern, for a schema."""
POLICY_WORDS: Final = f"must be one of {', '.join(DISPATCH_RULES)}, alone or with a plus and the order of the queue, one of {', '.join(QUEUE_RULES)}"
"""The same in words."""

PARAMETERS: Final = {
    "LeastHarm": {"exponent": (1.0, 8.0), "fairness": (0.0, 2.0)},
    "HexGenFlow": {"alpha": (0.0, 1.0), "beta": (0.001, 1000.0)},
    "HexGenFlowLiteral": {"alpha": (0.0, 1.0), "beta": (0.001, 1e9)},
    "PowerOfTwo": {"seed": (0.0, 1e9)},
    "PrefixPowerOfTwo": {"imbalance": (0.0, 10_000.0), "match": (0.0, 1.0), "seed": (0.0, 1e9)},
    "StickyUntilSaturated": {"affinity": (0.0, 1.0), "gap": (0.0, 1000.0), "by_calls": (0.0, 1.0)},
    "MostRelaxed": {"share": (0.01, 10.0)},
    "JustEnough": {"share": (0.0, 10.0)},
}
"""Parameters of the dispatch rules that take some, with their bounds."""
PINNED: Final = ("fairness",)
"""Those that a resource may only pin: what is fair among tenants no replay of a trace can tell."""
