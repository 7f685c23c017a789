"""The trace files of HexGen-Flow's authors: lengths of every call of a query, without arrivals.

Their file is a JSON list of ``{"Text2SQLRequest": [{"step": …, "input_length": …, "output_length": …}, …]}``, the steps in the order
in which they ran; drafts and evaluations ran side by side, everything else one after another. Such files carry
no licence and are none of this repository: give the path of your own copy.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count as numbers
from itertools import groupby, islice
from pathlib import Path
from random import Random
from typing import Annotated, Final

import msgspec

from hexflow_scheduler import PrefixBlock
from hexflow_simulator.arrivals import Arrivals
from hexflow_simulator.chess import TEMPLATE_TOKENS
from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.query import SimulatedCall, SimulatedQuery, SimulatedStage

STAGES: Final = {
    "Information Retriever": "retriever",
    "extract_keywords": "keywords",
    "generate_candidate_llama-agent": "candidate",
    "revise": "revise",
    "unit_tester": "tester",
    "generate_unit_test": "unit-tests",
    "evaluate": "evaluate",
}
"""Our name of each step."""
_SIDE_BY_SIDE = ("candidate", "evaluate")
_LARGEST = 512 * 1024 * 1024

_Tokens = Annotated[int, msgspec.Meta(ge=1, le=10**8)]


class _Step(msgspec.Struct):
    step: str
    input_length: _Tokens
    output_length: _Tokens


class _Workflow(msgspec.Struct):
    steps: Annotated[tuple[_Step, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="Text2SQLRequest")


_DECODER = msgspec.json.Decoder(list[_Workflow])


@dataclass(frozen=True, slots=True)
class HexGenFile:
    """The workflows of a file, in its order."""

    path: Path
    workflows: tuple[tuple[SimulatedStage, ...], ...]

    def queries(
        self,
        arrivals: Arrivals,
        seed: int,
        *,
        model: str,
        count: int | None = None,
        base_seconds: float | None = None,
        slo_factor: float = 5.0,
    ) -> Iterator[SimulatedQuery]:
        """Yield the workflows as queries, one after another and from the start again, ``count`` of them (default: each once)."""
        times = arrivals.times(Random(f"{self.path.name}/{seed}"))  # noqa: S311  not for secrets
        size = len(self.workflows)
        for number, arrival in islice(zip(numbers(), times, strict=False), size if count is None else count):
            yield SimulatedQuery(
                query_id=f"{self.path.stem}-{number}",
                arrival=arrival,
                stages=self.workflows[number % size],
                model=model,
                workflow=self.path.stem,
                slo_seconds=None if base_seconds is None else slo_factor * base_seconds,
                base_seconds=base_seconds,
            )


def read_hexgen(path: Path) -> HexGenFile:
    """Read a file of the authors; raises InvalidTrace with what is wrong."""
    where = Where(str(path))
    try:
        if path.stat().st_size > _LARGEST:
            raise InvalidTrace(where, "a file of more than 512 MiB", "split it: it is read as a whole")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidTrace(where, f"cannot be read ({error.strerror})", "give a path that can") from error
    try:
        workflows = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        found = re.search(r"\(byte (\d+)\)", str(error))
        line = data.count(b"\n", 0, int(found.group(1))) + 1 if found else None
        raise InvalidTrace(
            Where(str(path), line),
            f"no trace of HexGen-Flow ({error})",
            'give a JSON list of {"Text2SQLRequest": [{"step", "input_length", "output_length"}, …]}',
        ) from error
    if not workflows:
        raise InvalidTrace(where, "an empty list", "give a file with at least one workflow")
    for place, workflow in enumerate(workflows):
        for step in workflow.steps:
            if step.step not in STAGES:
                raise InvalidTrace(
                    where,
                    f"workflow {place} has a step {step.step!r}",
                    f"rename it to one of: {', '.join(STAGES)}",
                )
    return HexGenFile(path, tuple(_stages(workflow.steps) for workflow in workflows))


def _stages(steps: Sequence[_Step]) -> tuple[SimulatedStage, ...]:
    stages: list[SimulatedStage] = []
    seen: dict[str, int] = {}
    for name, group in groupby(steps, key=lambda step: STAGES[step.step]):
        calls = [_call(name, place, step) for place, step in enumerate(group)]
        seen[name] = rank = seen.get(name, 0) + 1
        if name == "retriever":
            title = name if rank == 1 else "retriever-again" if rank == 2 else f"retriever-{rank}"
        else:
            title = name if rank == 1 else f"{name}-{rank}"
        stages.append(
            SimulatedStage(name=title, calls=tuple(calls) if name in _SIDE_BY_SIDE else _chain(calls))
        )
    return tuple(stages)


def _chain(calls: Sequence[SimulatedCall]) -> tuple[SimulatedCall, ...]:
    then: tuple[SimulatedCall, ...] = ()
    for call in reversed(calls):
        then = (
            SimulatedCall(
                prompt_tokens=call.prompt_tokens,
                output_tokens=call.output_tokens,
                prefix=call.prefix,
                then=then,
            ),
        )
    return then


def _call(stage: str, place: int, step: _Step) -> SimulatedCall:
    kind = f"{stage}-{'one' if place == 0 else 'two'}" if stage == "candidate" else stage
    template = PrefixBlock(key=f"chess/{kind}", tokens=TEMPLATE_TOKENS[kind])
    return SimulatedCall(
        prompt_tokens=step.input_length,
        output_tokens=step.output_length,
        prefix=(template,) if template.tokens < step.input_length else (),
    )
