"""The names of scheduling policies that a resource may give.

Only what the kernel has may be named here. This package may not import the kernel, so the names stand in
both and a test compares them (ADR 0006). What they do is the kernel's.
"""

from typing import Final

DISPATCH_RULES: Final = {"HexGenFlow": "Urgency", "RoundRobin": "FCFS", "LeastOutstanding": "FCFS"}
"""Rules that pick the instance of a ready call, each with the queue rule that goes with it where none is named."""
QUEUE_RULES: Final = ("FCFS", "Urgency", "LeastLaxity", "VTC", "QLM", "LeastAttained", "ProjectedRatio")
"""Rules that order the calls that wait at an instance."""

DEFAULT_POLICY: Final = "HexGenFlow"

POLICIES: Final[dict[str, tuple[str, str]]] = {
    **{dispatch: (dispatch, queue) for dispatch, queue in DISPATCH_RULES.items()},
    **{f"{dispatch}+{queue}": (dispatch, queue) for dispatch in DISPATCH_RULES for queue in QUEUE_RULES},
}
"""Each name that ``scheduling.policy`` may have -> its dispatch rule and queue rule."""

POLICY_NAME: Final = rf"^({'|'.join(DISPATCH_RULES)})(\+({'|'.join(QUEUE_RULES)}))?$"
"""The same as a pattern, for a schema."""
POLICY_WORDS: Final = f"must be one of {', '.join(DISPATCH_RULES)}, alone or with a plus and the order of the queue, one of {', '.join(QUEUE_RULES)}"
"""The same in words."""

PARAMETERS: Final = {"HexGenFlow": {"alpha": (0.0, 1.0), "beta": (0.001, 1000.0)}}
"""Parameters of the dispatch rules that take some, with their bounds."""
