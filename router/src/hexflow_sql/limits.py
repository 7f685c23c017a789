"""How much one statement may take: of time, of rows, of memory and of the machine's patience."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bound one execution of a statement.

    What passes ``rows``, ``cell_bytes`` or ``bytes`` is cut and the result says so; what passes
    ``seconds`` or ``columns`` fails.
    """

    seconds: float = 10.0
    """Real seconds from the start to the last row."""
    rows: int = 1_000
    columns: int = 100
    cell_bytes: int = 16_384
    """UTF-8 bytes of one cell; a longer text ends with an ellipsis."""
    bytes: int = 4_000_000
    """Bytes of all cells together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Say which of the three layers of safety are on.

    All are, outside the tests that show that each holds alone.
    """

    parser: bool = True
    engine: bool = True
    resources: bool = True
