"""The names of scheduling policies that a resource may give.

Only what the kernel has may be named here (a test compares the two); what the names do is the kernel's.
"""

from typing import Final

DISPATCH_RULES: Final = ("HexGenFlow", "RoundRobin", "LeastOutstanding")
"""Rules that pick the instance of a ready call."""
QUEUE_RULES: Final = ("FCFS", "Urgency")
"""Rules that order the calls that wait at an instance."""

DEFAULT_POLICY: Final = "HexGenFlow"

POLICIES: Final[dict[str, tuple[str, str]]] = {
    "HexGenFlow": ("HexGenFlow", "Urgency"),
    "RoundRobin": ("RoundRobin", "FCFS"),
    "LeastOutstanding": ("LeastOutstanding", "FCFS"),
} | {f"{dispatch}+{queue}": (dispatch, queue) for dispatch in DISPATCH_RULES for queue in QUEUE_RULES}
"""Each name that ``scheduling.policy`` may have -> its dispatch rule and queue rule."""

PARAMETERS: Final[dict[str, dict[str, tuple[float, float]]]] = {
    "HexGenFlow": {"alpha": (0.0, 1.0), "beta": (0.001, 1000.0)},
    "RoundRobin": {},
    "LeastOutstanding": {},
}
"""Parameters that each dispatch rule takes, with their bounds."""
