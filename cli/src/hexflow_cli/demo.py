"""`hexflow demo`: a burst of questions on three unequal emulated GPUs, under one policy and then under another."""

from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel
from rich.live import Live
from rich.text import Text

from hexflow_api import POLICIES, load_resources
from hexflow_api.policy import POLICY_WORDS
from hexflow_cli import comparison, samples
from hexflow_cli.board import BurstBoard, line
from hexflow_cli.burst import Asking, a_burst, ask_all
from hexflow_cli.console import print_json, stderr, stdout
from hexflow_cli.enginetime import engine_times
from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.laptop import Laptop, LaptopOptions, a_laptop
from hexflow_cli.report import Outcome, Report, sum_up
from hexflow_cli.sample.questions import sample_questions

SPAN_SECONDS = 30.0
"""Emulated seconds within which all questions are asked."""
_DISPATCH_IN_WORDS = {
    "LeastHarm": "each call to the GPU where all questions together suffer least",
    "HexGenFlow": "each call to a fast GPU with a short queue",
    "HexGenFlowLiteral": "each call to a fast GPU with a short queue, as the paper prints it",
    "RoundRobin": "each call to the next GPU in turn, as a plain load balancer does",
    "LeastOutstanding": "each call to the GPU with the fewest calls",
    "PowerOfTwo": "each call to the less busy of two GPUs drawn at random",
    "PrefixPowerOfTwo": "each call to the GPU that knows most of its prompt, while load is even",
    "ShortestQueue": "each call to the GPU with the fewest seconds of work left",
    "EarliestFinish": "each call to the GPU that will be done with it soonest",
    "StickyUntilSaturated": "each call to a GPU that knows its prompt, until those are too busy",
    "MostRelaxed": "each call to the type of GPU with the most slack, while it has room",
    "JustEnough": "each call to the slowest GPU that still answers in time",
}
_QUEUE_IN_WORDS = {
    "FCFS": "first come, first served",
    "Urgency": "the question that is latest first",
    "Deadline": "the question that must be answered soonest first",
    "LatestStart": "the call that must start soonest first",
    "LeastLaxity": "the call with the least time to spare first",
    "VTC": "the tenant that was served least first",
    "QLM": "groups of like questions, the one that must be answered soonest first",
    "LeastAttained": "the question that was served least first",
    "ProjectedRatio": "the question that will be latest for its size first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Hold what the command line said."""

    questions: int
    seed: int
    time_scale: float
    policy: str
    baseline: str | None
    book: Path | None
    as_json: bool


async def demo(options: DemoOptions) -> int:
    """Run the burst under each policy, show the tables, and return the exit code."""
    burst = a_burst(
        sample_questions().items, count=options.questions, span_seconds=SPAN_SECONDS, seed=options.seed
    )
    policies = [options.policy, *([options.baseline] if options.baseline else [])]
    for policy in policies:
        _refuse_unknown(policy)
    _introduce(len(burst))
    reports: list[Report] = []
    for policy in policies:
        reports.append(await _run(policy, burst, options))
    if options.as_json:
        print_json(
            {"timeScale": options.time_scale, "seed": options.seed, "runs": [_data(r) for r in reports]}
        )
    else:
        _show(reports, time_scale=options.time_scale)
    return ExitCode.FAILED if any(report.wrong for report in reports) else ExitCode.DONE


def in_words(policy: str) -> str:
    """Say what a policy does, for somebody who has never heard its name."""
    dispatch, queue = POLICIES[policy]
    return f"{_DISPATCH_IN_WORDS[dispatch]}; {_QUEUE_IN_WORDS[queue]}"


def _refuse_unknown(policy: str) -> None:
    if policy not in POLICIES:
        raise CommandError(
            f"There is no policy {policy!r}. It {POLICY_WORDS}.",
            code=ExitCode.USAGE,
            reason="UnknownPolicy",
        )


def _introduce(questions: int) -> None:
    resources = load_resources(samples.laptop_resources())
    gpus = ", ".join(f"{pool.spec.effective_replicas} × {pool.spec.gpu_type}" for pool in resources.pools)
    tenants = "; ".join(
        f"tenant {tenant.name} wants an answer in {workflow.spec.deadline_seconds(tenant.name)} s"
        for workflow in resources.workflows
        for tenant in workflow.spec.tenants
    )
    stderr.print(
        Text(
            f"{questions} questions about a shop arrive within {SPAN_SECONDS:g} s at emulated GPUs ({gpus}): {tenants}. "
            "Each takes five to ten calls to a language model, and SQL that is run."
        )
    )


async def _run(policy: str, burst: tuple[Asking, ...], options: DemoOptions) -> Report:
    stderr.print(Text(f"Starting the fleet and a router under {policy} ({in_words(policy)}) …", style="dim"))
    laptop_options = LaptopOptions(
        book=samples.book(options.book), time_scale=options.time_scale, policy=policy
    )
    async with a_laptop(laptop_options, log=_silent, note=_silent_note) as laptop:
        return await _burst(laptop, policy, burst, options)


async def _burst(laptop: Laptop, policy: str, burst: tuple[Asking, ...], options: DemoOptions) -> Report:
    state = laptop.state()
    workflow = state.workflows[0]
    keys = {
        tenant.name: tenant.api_key_file.read_text(encoding="utf-8").strip()
        for tenant in workflow.tenants
        if tenant.api_key_file
    }
    gpus = {f"{pool.name}-0": pool.spec.gpu_type for pool in laptop.resources.pools}
    board = BurstBoard(policy=policy, total=len(burst), gpus=gpus)
    live = Live(board, console=stderr, refresh_per_second=5, transient=True)
    drawn = stderr.is_terminal
    if drawn:
        live.start()
    try:
        outcomes = await ask_all(
            burst,
            url=laptop.url,
            workflow=workflow.name,
            api_keys=keys,
            reference_time=sample_questions().reference_time,
            time_scale=options.time_scale,
            board=board,
            on_outcome=(lambda outcome: None)
            if drawn
            else (lambda outcome: stderr.print(line(outcome), no_wrap=True, overflow="ellipsis")),
        )
    finally:
        if drawn:
            live.stop()
    return sum_up(policy, outcomes, await engine_times(laptop.instance_urls()))


def _show(reports: list[Report], *, time_scale: float) -> None:
    stdout.print(comparison.answers_table(reports[0], width=stdout.width))
    for report in reports:
        if report.wrong:
            stdout.print(comparison.wrong_table(report))
    stdout.print(comparison.policies_table(reports))
    stdout.print(comparison.stages_table(reports), "")
    stdout.print(comparison.instances_table(reports, width=stdout.width), "")
    stdout.print(comparison.conclusion(reports, time_scale=time_scale))


def _data(report: Report) -> dict[str, Any]:
    return {
        "policy": report.policy,
        "overall": _camel(asdict(report.overall)),
        "byTenant": {name: _camel(asdict(latency)) for name, latency in report.by_tenant.items()},
        "makespanSeconds": report.makespan_seconds,
        "stages": [_camel(asdict(stage)) for stage in report.stages],
        "instances": [
            {**_camel(asdict(instance)), "engine": _camel(asdict(instance.engine))}
            for instance in report.instances
        ],
        "wrong": len(report.wrong),
        "questions": [_question(outcome) for outcome in report.outcomes],
    }


def _question(outcome: Outcome) -> dict[str, Any]:
    return {
        "number": outcome.number,
        "tenant": outcome.tenant,
        "arrivalSeconds": outcome.arrival_seconds,
        "right": outcome.right,
        "met": outcome.met,
        "failure": outcome.failure or None,
        "answer": outcome.answer.data() if outcome.answer else None,
        "question": outcome.question,
    }


def _camel(values: dict[str, Any]) -> dict[str, Any]:
    return {
        to_camel(key): (None if isinstance(value, float) and not isfinite(value) else value)
        for key, value in values.items()
    }


def _silent(name: str, text: str) -> None:
    """Drop a line of a child's log; the last lines are kept for the message if it dies."""


def _silent_note(text: str) -> None:
    """Drop a remark."""
