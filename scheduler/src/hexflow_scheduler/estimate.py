"""Estimates: what is learned from finished calls and queries, for the predictions about the next ones.

Lengths of output and prompt per (workflow, stage, model, template), how many rounds a chain takes, how
long a query goes on after a call and in all, and how much slower each instance is than its profile. All
of it comes from the kernel's own inputs, so that a replay learns the same.
"""

from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import Any, TypeVar

from hexflow_scheduler.call import Call, RestClass, Usage, rest_class
from hexflow_scheduler.cost import MeanSpeed, Speed
from hexflow_scheduler.errors import InvalidInput
from hexflow_scheduler.instance import Instance
from hexflow_scheduler.quantile import MEMORY, Quantiles, bucket_of

Key = TypeVar("Key", bound=tuple[str | int, ...])
Kept = TypeVar("Kept")

BYTES_PER_TOKEN = 3.6
"""Bytes of UTF-8 to a token, between prose (about 4.4) and schemas with numbers (about 3)."""
PRIOR_OUTPUT_TOKENS = 400.0
"""Output of a call of which nothing is known (candidates in real logs: 550-650, corrections 80-120)."""
PRIOR_PROMPT_TOKENS = 4000.0
"""Prompt of a stage of which nothing is known."""
ENOUGH = 3.0
"""Observations that make a class be believed before its fall-back."""
LEARNING_RATE = 0.1
"""Exponent of ``observed / predicted`` by which a speed factor moves with each call."""
SCALE_BOUNDS = (0.1, 10.0)
"""Where speed factors are kept."""
MOST_CLASSES = 1000
"""Classes that are kept apart; names come from callers, and the one heard of longest ago makes room."""
MOST_ROUNDS = 32
"""Rounds of a chain that are counted."""

GAIN = 0.03
"""Weight of the newest observation in a mean of seconds (the study's); the first few count alike."""

VERSION = 2
"""2: how long queries go on is learned too."""


def estimate_tokens(text: str) -> int:
    """Return roughly how many tokens a text has, without a tokenizer.

    From its bytes alone: within 25 % for English, SQL and schemas under the tokenizers of Qwen and
    Llama 3; too low by up to half for digits and rare scripts, too high for long runs of blanks. What
    the engine reports takes its place as soon as there is a report.
    """
    return ceil(len(text.encode("utf-8", errors="replace")) / BYTES_PER_TOKEN)


class LengthClass:
    """Keep the lengths of the calls of one class."""

    __slots__ = ("output", "prompt")

    def __init__(self, output: Quantiles | None = None, prompt: Quantiles | None = None) -> None:
        self.output = output or Quantiles()
        self.prompt = prompt or Quantiles()


class Average:
    """Keep the mean of a number, the newest observations counting most."""

    __slots__ = ("count", "mean")

    def __init__(self, count: int = 0, mean: float = 0.0) -> None:
        self.count = count
        self.mean = mean

    def observe(self, value: float) -> None:
        """Add one observation."""
        self.count += 1
        self.mean += (value - self.mean) * max(GAIN, 1 / self.count)


class Estimates:
    """Learn from finished calls and predict the next ones.

    Calls of one stage whose prompts begin with different templates have lengths of their own. A class of
    which fewer than ``ENOUGH`` calls are known falls back to its stage in its workflow and model, that to the
    stage in any, that to all calls, and those to a constant.
    """

    def __init__(self) -> None:
        self._lengths: dict[tuple[str, ...], LengthClass] = {}
        self._rounds: dict[tuple[str, str], list[float]] = {}
        self._rests: dict[tuple[str | int, ...], Average] = {}
        self._durations: dict[tuple[str, ...], Average] = {}
        self._scales: dict[str, tuple[float, float]] = {}

    # Lengths

    def output_tokens(self, call: Call) -> float:
        """Return the expected output of one sample of the call: the mean of its class.

        The mean and not the median, since what a call costs others grows with its tokens.
        """
        lengths = self._known(call.workflow, call.stage, call.model, template_of(call))
        return min(PRIOR_OUTPUT_TOKENS if lengths is None else lengths.output.mean(), call.max_tokens)

    def prompt_tokens(self, workflow: str, stage: str, model: str) -> float:
        """Return the median length of the prompts of such calls."""
        lengths = self._known(workflow, stage, model)
        return PRIOR_PROMPT_TOKENS if lengths is None else lengths.prompt.quantile(0.5)

    # Rounds

    def rounds(self, workflow: str, stage: str) -> float:
        """Return how many calls a chain of the stage makes on average, one after the other; at least 1."""
        counts = self._rounds.get((workflow, stage))
        if not counts or not counts[0]:
            return 1.0
        total = 0.0
        for count in counts:
            total += count
        return total / counts[0] if total > counts[0] else 1.0

    # Stages

    def stage_seconds(self, workflow: str, stage: str, model: str, fleet: MeanSpeed) -> float:
        """Return the expected seconds of a stage on an idle fleet: its rounds times the mean call.

        Source: HexGen-Flow takes the mean cost over the instances.
        """
        prompt, output = PRIOR_PROMPT_TOKENS, PRIOR_OUTPUT_TOKENS
        lengths = self._known(workflow, stage, model)
        if lengths is not None:
            prompt, output = lengths.prompt.quantile(0.5), lengths.output.quantile(0.5)
        return self.rounds(workflow, stage) * fleet.call_seconds(prompt, output)

    # Queries

    def rest_seconds(self, call: Call) -> float:
        """Return how long a query goes on after such a call has ended, on average; 0 if unknown.

        From the end of the last call of its class to the end of the query, so it grows with the load.
        """
        return _mean(self._rests, _rest_fall_backs(rest_class(call))) or 0.0

    def query_seconds(self, workflow: str) -> float | None:
        """Return how long a query of the workflow takes from its arrival on average; None if unknown."""
        return _mean(self._durations, ((workflow,), ()))

    # Speeds

    def speed(self, instance: Instance) -> Speed:
        """Return an instance's profile with the factors that were learned for it."""
        return Speed(instance.profile, *self.scales(instance.instance_id))

    def scales(self, instance_id: str) -> tuple[float, float]:
        """Return by what prefill and decode are slower than the instance's profile says; 1 if unknown."""
        return self._scales.get(instance_id, (1.0, 1.0))

    # Learning

    def arrived(self, call: Call) -> None:
        """Count a call towards the rounds of its stage."""
        counts = _refreshed(self._rounds, (call.workflow, call.stage), list)
        rank = min(call.round, MOST_ROUNDS - 1)
        counts.extend([0.0] * (rank + 1 - len(counts)))
        counts[rank] += 1.0
        if counts[0] > MEMORY:
            counts[:] = [count / 2 for count in counts]

    def finished(self, call: Call, usage: Usage) -> None:
        """Learn the lengths of a finished call."""
        output, prompt = bucket_of(usage.output_tokens / call.samples), bucket_of(usage.prompt_tokens)
        for key in _fall_backs(call.workflow, call.stage, call.model, template_of(call)):
            lengths = _refreshed(self._lengths, key, LengthClass)
            lengths.output.count_in(output)
            lengths.prompt.count_in(prompt)

    def rested(self, kind: RestClass, seconds: float) -> None:
        """Learn how long an answered query went on after the last call of a class."""
        for key in _rest_fall_backs(kind):
            _refreshed(self._rests, key, Average).observe(seconds)

    def answered(self, workflow: str, seconds: float) -> None:
        """Learn how long an answered query took in all."""
        for key in ((workflow,), ()):
            _refreshed(self._durations, key, Average).observe(seconds)

    def timed(self, instance_id: str, *, prefill: float | None, decode: float | None) -> None:
        """Move an instance's factors by observed over predicted seconds; None says nothing."""
        old = self._scales.get(instance_id, (1.0, 1.0))
        self._scales[instance_id] = (_moved(old[0], prefill), _moved(old[1], decode))

    def forget(self, instance_id: str) -> None:
        """Drop what was learned about an instance that is gone for good."""
        self._scales.pop(instance_id, None)

    # Keeping

    def to_data(self) -> dict[str, Any]:
        """Return all that was learned as plain data (JSON), for ``from_data``."""
        return {
            "version": VERSION,
            "lengths": [
                {"class": list(key), "output": lengths.output.to_data(), "prompt": lengths.prompt.to_data()}
                for key, lengths in self._lengths.items()
            ],
            "rounds": [[*key, list(counts)] for key, counts in self._rounds.items()],
            "rests": [[list(key), mean.count, mean.mean] for key, mean in self._rests.items()],
            "durations": [[list(key), mean.count, mean.mean] for key, mean in self._durations.items()],
            "scales": [[key, *scales] for key, scales in self._scales.items()],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Estimates":
        """Return the estimates that ``to_data`` described; raises InvalidInput for anything else."""
        made = cls()
        try:
            if data["version"] != VERSION:
                raise InvalidInput(f"estimates of version {data['version']!r} cannot be read; drop them")
            for row in data["lengths"]:
                made._lengths[tuple(row["class"])] = LengthClass(
                    Quantiles.from_data(row["output"]), Quantiles.from_data(row["prompt"])
                )
            made._rounds = {(w, s): [float(n) for n in counts] for w, s, counts in data["rounds"]}
            made._rests = {tuple(key): Average(count, mean) for key, count, mean in data["rests"]}
            made._durations = {tuple(key): Average(count, mean) for key, count, mean in data["durations"]}
            made._scales = {key: (float(prefill), float(decode)) for key, prefill, decode in data["scales"]}
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"these are no saved estimates ({error!r}); drop them") from error
        return made

    def _known(self, workflow: str, stage: str, model: str, template: str = "") -> LengthClass | None:
        for key in _fall_backs(workflow, stage, model, template):
            lengths = self._lengths.get(key)
            if lengths is not None and lengths.output.count >= ENOUGH:
                return lengths
        return None


def template_of(call: Call) -> str:
    """Return what names the beginning that the call's prompt shares with others of its kind; empty for none."""
    return call.prefix[0].key if call.prefix else ""


def _fall_backs(workflow: str, stage: str, model: str, template: str) -> tuple[tuple[str, ...], ...]:
    plain = (workflow, stage, model), (stage,), ()
    return ((workflow, stage, model, template), *plain) if template else plain


def _rest_fall_backs(kind: RestClass) -> tuple[tuple[str | int, ...], ...]:
    workflow, stage, model, rank = kind
    return (workflow, stage, model, rank), (stage, rank), ()


def _mean(kept: Mapping[Key, Average], keys: Iterable[Key]) -> float | None:
    for key in keys:
        found = kept.get(key)
        if found is not None and found.count >= ENOUGH:
            return found.mean
    return None


def _refreshed(kept: dict[Key, Kept], key: Key, make: Callable[[], Kept]) -> Kept:
    """Return what is kept under a key, made if it is new, as the one heard of last."""
    if len(kept) < MOST_CLASSES // 2 and (known := kept.get(key)) is not None:
        return known  # far from full, the order does not matter
    found = kept.pop(key, None)
    kept[key] = made = make() if found is None else found
    if len(kept) > MOST_CLASSES:
        del kept[next(iter(kept))]
    return made


def _moved(scale: float, ratio: float | None) -> float:
    if ratio is None or not ratio > 0:
        return scale
    low, high = SCALE_BOUNDS
    moved: float = scale * ratio**LEARNING_RATE
    return min(high, max(low, moved))
