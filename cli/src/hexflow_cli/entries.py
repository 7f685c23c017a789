"""The policies that a command line names: ``LeastHarm``, ``RoundRobin+Urgency``, ``HexGenFlow:alpha=0.3,beta=1``."""

from collections.abc import Iterable, Sequence

from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_scheduler import InvalidParameter, UnknownPolicy
from hexflow_simulator.contest import Entry
from hexflow_simulator.knobs import BASELINES

USUAL = (
    "LeastHarm",
    "HexGenFlow",
    "EarliestFinish",
    "ShortestQueue",
    "LeastOutstanding",
    "RoundRobin",
)
"""What is compared where nobody says what: ours, the paper's, and plain ideas from good to plainest."""
ALL = tuple(dict.fromkeys(("LeastHarm", *BASELINES.values())))
"""What the word ``all`` stands for."""


def entries_named(names: Sequence[str]) -> tuple[Entry, ...]:
    """Return the policies in the order they were named, each once; raises CommandError."""
    return tuple(dict.fromkeys(_entry(name) for name in _unfolded(names or USUAL)))


def _unfolded(names: Iterable[str]) -> Iterable[str]:
    for name in names:
        yield from ALL if name == "all" else (name,)


def _entry(text: str) -> Entry:
    name, colon, values = text.partition(":")
    entry = Entry(policy=name.strip(), parameters=_parameters(text, values) if colon else ())
    try:
        entry.made()
    except (UnknownPolicy, InvalidParameter) as error:
        message = str(error)
        raise CommandError(
            f"{message[0].upper()}{message[1:]}. `all` stands for the {len(ALL)} that are usually compared.",
            code=ExitCode.USAGE,
            reason=type(error).__name__,
        ) from error
    return entry


def _parameters(text: str, values: str) -> tuple[tuple[str, float], ...]:
    found: dict[str, float] = {}
    for part in values.split(","):
        name, equals, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise CommandError(
                f"{text!r} does not say values of parameters; write for example HexGenFlow:alpha=0.3,beta=1.",
                code=ExitCode.USAGE,
                reason="InvalidParameter",
            )
    return tuple(sorted(found.items()))
