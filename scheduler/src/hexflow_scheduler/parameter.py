"""Parameters: the numbers of a policy that a person or the tuner may set, with their bounds."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from hexflow_scheduler.errors import InvalidParameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Declare a parameter of a dispatch rule."""

    name: str
    default: float
    low: float
    """Smallest value allowed."""
    high: float
    """Largest value allowed."""
    meaning: str
    """One sentence for a person who sets it."""


class Parameters(Mapping[str, float]):
    """Hold values of parameters by name: ``Parameters(alpha=0.3)["alpha"]``. Immutable.

    What is left out keeps its default or its present value.
    """

    __slots__ = ("_values",)

    def __init__(self, /, **values: float) -> None:
        self._values = {name: float(values[name]) for name in sorted(values)}

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        # Spelt out: compiled, a class with a hash of its own does not get Mapping's.
        return isinstance(other, Mapping) and self._values == dict(other)

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __repr__(self) -> str:
        return f"Parameters({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"

    def over(self, base: Mapping[str, float]) -> "Parameters":
        """Return ``base`` with these values in the place of its own."""
        return Parameters(**{**base, **self._values})

    def check(self, declared: Iterable[Parameter], *, owner: str) -> None:
        """Raise InvalidParameter for a name that ``owner`` does not declare or a value out of bounds."""
        known = {parameter.name: parameter for parameter in declared}
        for name, value in self._values.items():
            parameter = known.get(name)
            if parameter is None:
                has = ", ".join(known) or "none"
                raise InvalidParameter(f"{owner} has no parameter {name!r}; it has: {has}")
            if not (isfinite(value) and parameter.low <= value <= parameter.high):
                raise InvalidParameter(
                    f"{name} of {owner} lies between {parameter.low:g} and {parameter.high:g}, not {value:g}"
                )
