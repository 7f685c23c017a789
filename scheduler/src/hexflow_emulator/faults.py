"""Faults on demand: what goes wrong at an emulated instance, and how often.

A fault is written ``NAME:VALUE`` with ``:KEY=VALUE`` after it where it takes more:

* ``error:N[:status=500]``      the next N calls are answered with an error
* ``error-rate:P[:status=500]`` each call is, with probability P
* ``stall:N[:tokens=K]``        the next N calls fall silent after K tokens (0) and never end
* ``abort:N[:tokens=K]``        the next N end after K tokens (1) as under SIGTERM: 200, finish_reason abort
* ``cut:N[:tokens=K]``          the connection of the next N breaks after K tokens (1)
* ``rubbish:N[:kind=html]``     the next N are answered with rubbish: html, json (broken), empty, sse (broken)
* ``freeze:SECONDS``            the engine stands still for so long
* ``slow:FACTOR``               the engine takes FACTOR times as long from now on; 1 ends it
* ``die-after:N``               the process ends without a word when the Nth call from now arrives
* ``slow-start:SECONDS``        the port opens only after so long (at the start alone)

Seconds are emulated ones.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from hexflow_emulator.errors import FaultError

CALL_FAULTS = ("error", "error-rate", "stall", "abort", "cut", "rubbish")
"""Faults that happen to single calls; of several the first that applies is taken."""
ENGINE_FAULTS = ("freeze", "slow", "die-after", "slow-start")
KINDS = ("html", "json", "empty", "sse")
_KEYS: dict[str, dict[str, int | str]] = {
    "error": {"status": 500},
    "error-rate": {"status": 500},
    "stall": {"tokens": 0},
    "abort": {"tokens": 1},
    "cut": {"tokens": 1},
    "rubbish": {"kind": "html"},
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault as it was asked for."""

    name: str
    value: float
    status: int = 500
    tokens: int = 0
    kind: str = "html"

    @classmethod
    def parse(cls, text: str) -> "Fault":
        """Read a fault. Raises FaultError with what may be written."""
        name, *rest = text.split(":")
        if name not in (*CALL_FAULTS, *ENGINE_FAULTS):
            raise FaultError(
                f"there is no fault {name!r}; there are {', '.join((*CALL_FAULTS, *ENGINE_FAULTS))}"
            )
        options: dict[str, Any] = dict(_KEYS.get(name, {}))
        value = 0.0
        for place, part in enumerate(rest):
            key, equals, given = part.partition("=")
            try:
                if place == 0:
                    value = float(part)
                elif not equals or key not in options:
                    raise ValueError
                elif key == "kind":
                    options[key] = KINDS[KINDS.index(given)]
                else:
                    options[key] = int(given)
            except ValueError:
                takes = ", ".join(f"{k}=…" for k in _KEYS.get(name, {})) or "nothing more"
                raise FaultError(
                    f"{text!r}: {part!r} is not understood; {name}:NUMBER takes {takes}"
                ) from None
        if not 0 < value < float("inf") or (name == "error-rate" and value > 1):
            raise FaultError(
                f"{text!r}: write a number after {name}:, "
                + ("at most 1" if name == "error-rate" else "more than 0")
            )
        return cls(name, value, **options)


@dataclass(slots=True)
class Faults:
    """Hold the faults in force and say which one befalls a call."""

    seed: int = 0
    pending: list[Fault] = field(default_factory=list)
    _left: dict[int, float] = field(default_factory=dict)
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311
        self.replace(self.pending)

    def replace(self, faults: list[Fault]) -> None:
        """Put other faults in force."""
        self.pending = list(faults)
        self._left = {place: fault.value for place, fault in enumerate(self.pending)}

    def left(self) -> list[dict[str, float | str]]:
        """Return what is still to come, by name."""
        return [
            {"name": fault.name, "left": self._left[place]}
            for place, fault in enumerate(self.pending)
            if self._left[place] > 0
        ]

    def value(self, name: str) -> float | None:
        """Return the value of a fault of the whole engine, if it is in force."""
        return next((fault.value for fault in self.pending if fault.name == name), None)

    def dies(self) -> bool:
        """Count a call that arrives; return whether the process ends with it."""
        for place, fault in enumerate(self.pending):
            if fault.name == "die-after":
                self._left[place] -= 1
                if self._left[place] <= 0:
                    return True
        return False

    def strike(self) -> Fault | None:
        """Return the fault that befalls the call that has just arrived."""
        for place, fault in enumerate(self.pending):
            if fault.name == "error-rate":
                if self._random.random() < fault.value:
                    return fault
            elif fault.name in CALL_FAULTS and self._left[place] > 0:
                self._left[place] -= 1
                return fault
        return None
