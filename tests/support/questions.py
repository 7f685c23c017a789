"""Hundreds of questions through the router's own pipeline, over emulated instances in this process, in virtual time.

All is the router's but the sockets and the database, whose statements take virtual time.
"""

import asyncio
import itertools
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from hexflow_api import builtin_profile
from hexflow_emulator import EmulatorOptions
from hexflow_emulator.app import instance_app
from hexflow_emulator.book import AnswerBook, BookFile
from hexflow_emulator.instance import EmulatedInstance
from hexflow_emulator.speech import BookSpeech, filler
from hexflow_router.answer import Question
from hexflow_router.auth import Tenant
from hexflow_router.configuration import Configuration, WorkflowSetup, arrange
from hexflow_router.databases import Databases
from hexflow_router.discovery import Discovery
from hexflow_router.driver import Driver
from hexflow_router.metrics import Metrics
from hexflow_router.pipeline import Pipeline
from hexflow_router.query import Query
from hexflow_router.watch import ProbeRule
from hexflow_scheduler import Policy, Profile, RecordingKernel, TimeScale
from hexflow_simulator import EngineOptions, EngineOrder
from hexflow_sql import Result, StatementFailed
from hexflow_sql.limits import Limits
from support import virtual_time
from support.asgi import AsgiUpstream
from support.datapath import a_pool, watching
from support.resources import MODEL, a_secret, a_workflow, resources_of
from support.resources import a_pool as a_gpu_pool
from support.router import LINKING, RIGHT, WORKFLOW, WRONG_COLUMN, WRONG_ROWS
from support.router import an_entry as plain_entry
from support.sql import a_result, a_schema, a_table
from support.stages import ScriptedDatabase

KINDS = 40
"""Questions that differ; the others are asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Say what became of a question."""

    query_id: str
    seconds: float
    status: str


def a_profile(gpu_type: str, tensor_parallel: int) -> Profile:
    """Return the built-in speed of the tests' model."""
    found = builtin_profile(gpu_type, MODEL, tensor_parallel)
    assert found is not None
    return Profile(**found.coefficients())


SPEEDS = {"a100": a_profile("A100-80GB", 2), "l40s": a_profile("L40S", 4)}
"""Speed of the instances of each pool; each pool has two."""


def _said(chance: Random, sql: str, *, median: float) -> str:
    thoughts = filler(max(4, int(chance.lognormvariate(0.0, 0.5) * median)), seed=str(chance.random()))
    return f"{thoughts}\n```sql\n{sql}\n```"


def an_entry(number: int) -> dict[str, Any]:
    """Return what the model says to a question, in so many words as make its calls differ in length."""
    chance = Random(number)
    statements = [chance.choice((RIGHT, RIGHT, WRONG_COLUMN, WRONG_ROWS)) for _ in range(3)]
    entry = plain_entry(question(number))
    entry["answers"] |= {
        "schema-linking": [
            {"text": filler(int(chance.uniform(20, 120)), seed=f"link {number}") + "\n" + LINKING}
        ],
        "candidate": [{"text": _said(chance, sql, median=220)} for sql in statements],
        "correction": [{"text": _said(chance, chance.choice((RIGHT, WRONG_ROWS)), median=150)}],
    }
    return entry


def question(number: int) -> str:
    """Return the text of a question."""
    return f"{number % KINDS:03d}: how many customers live in Berlin, if they are counted?"


def a_book() -> AnswerBook:
    """Return what the model says to every question."""
    entries = [an_entry(number) for number in range(KINDS)]
    return AnswerBook(BookFile.model_validate({"book": 1, "entries": entries}), path="book.yaml")


async def _run(sql: str) -> Result:
    chance = Random(sql)
    await asyncio.sleep(chance.uniform(0.2, 0.8))
    if "town" in sql:
        raise StatementFailed("NoSuchColumn", "no such column: town")
    return a_result((3,) if "WHERE" in sql else (5,))


def _emulated(book: AnswerBook, profile: Profile) -> Any:
    options = EmulatorOptions(
        model=MODEL, profile=profile, engine=EngineOptions(order=EngineOrder.PRIORITY), prompt_details=True
    )
    instance = EmulatedInstance(options, clock=virtual_time.now, sleep=asyncio.sleep)
    instance.speech = BookSpeech(book)
    return instance_app(instance)


def _workflow(folder: Path) -> WorkflowSetup:
    """Return the paper's four stages over all pools."""
    workflow = a_workflow(WORKFLOW, slo={"deadlineSeconds": 120})
    resources = resources_of(*(a_gpu_pool(name) for name in SPEEDS), workflow, a_secret())
    return arrange(resources, folder).workflows[WORKFLOW]


@dataclass(slots=True, kw_only=True)
class _Desk:
    """Take questions to the pipeline and note how they went."""

    driver: Driver
    pipeline: Pipeline
    workflow: WorkflowSetup
    went: list[Asked] = field(default_factory=list)

    async def ask(self, number: int) -> None:
        deadline = 120.0
        query = Query(
            query_id=f"q{number}",
            question=Question(question=question(number)),
            database="shop",
            workflow=self.workflow,
            tenant=Tenant(name="", workflow=WORKFLOW),
            policy=self.driver.kernel.policy.name,
            arrival=virtual_time.now(),
            deadline_seconds=deadline,
            longest_seconds=deadline * 10,
            created_wall=virtual_time.now(),
            clock=virtual_time.now,
        )
        await self.pipeline.run(query)
        assert query.ending is not None
        seconds = query.ending.at - query.arrival
        self.went.append(Asked(query_id=query.query_id, seconds=seconds, status=query.ending.status))


async def asked(
    folder: Path, lines: list[str], *, policy: str, count: int, seconds_between: float, seed: int = 1
) -> list[Asked]:
    """Ask ``count`` questions at random instants and return how they went; ``lines`` gets the event log.

    Run it in virtual time.
    """
    book, chance, numbers = a_book(), Random(seed), itertools.count()
    engines = {f"http://{name}-{each}": profile for name, profile in SPEEDS.items() for each in range(2)}
    upstream = AsgiUpstream({url: _emulated(book, profile) for url, profile in engines.items()})
    driver = Driver(
        RecordingKernel(Policy.named(policy), sink=lines.append), upstream=upstream, clock=virtual_time.now
    )
    discovery = Discovery(driver, probe_rule=ProbeRule(interval_seconds=10.0))
    discovery.configure(
        [
            a_pool(name, f"http://{name}-0", f"http://{name}-1", model=MODEL, profile=profile)
            for name, profile in SPEEDS.items()
        ]
    )
    setup = _workflow(folder)
    schema = a_schema(a_table("customers", "id", "name", "city"))
    databases = Databases(open_one=lambda _: ScriptedDatabase(schema, _run))
    databases.configure(Configuration(workflows={setup.name: setup}))
    scale = TimeScale(1.0, virtual_time.now())
    pipeline = Pipeline(
        release=driver.release,
        databases=databases,
        metrics=Metrics(),
        clock=virtual_time.now,
        scale=scale,
        stage_seconds=driver.kernel.stage_seconds,
        query_ended=lambda query_id, answered: driver.query_ended(query_id, answered=answered),
        new_id=lambda: f"c{next(numbers)}",
        limits=Limits(),
    )
    desk = _Desk(driver=driver, pipeline=pipeline, workflow=setup)
    async with watching(discovery):
        await asyncio.sleep(1)
        asking = []
        for number in range(count):
            await asyncio.sleep(chance.expovariate(1 / seconds_between))
            asking.append(asyncio.ensure_future(desk.ask(number)))
        await asyncio.gather(*asking)
    await databases.close()
    await driver.close()
    return desk.went
