import asyncio
from pathlib import Path
from typing import Any

import pytest

from hexflow_api import Resources, write_secrets
from hexflow_router.configuration import Configuration, arrange
from hexflow_router.configwatch import ConfigurationWatch
from hexflow_router.databases import Databases
from hexflow_router.sources import FileSource
from hexflow_router.succession import parameters_of, policy_of
from hexflow_sql.errors import DatabaseUnavailable
from hexflow_sql.schema import Schema
from support.resources import MODEL, a_pool, a_secret, a_workflow, resources_of
from support.router import Laptop, a_laptop
from support.sql import a_result, a_schema, a_sqlite_file
from support.stages import ScriptedDatabase
from support.waiting import eventually


def arranged(tmp_path: Path, *objects: Any) -> Configuration:
    resources: Resources = resources_of(*objects)
    write_secrets(resources, tmp_path)
    return arrange(resources, tmp_path)


def test_stages_know_their_model_and_their_pools(tmp_path: Path) -> None:
    small = a_pool("small", model={"name": "tiny"})
    stages = [
        {"name": "link", "kind": "SchemaLinking", "model": "tiny"},
        {"name": "write", "kind": "CandidateGeneration", "model": MODEL, "pools": ["a100"]},
    ]
    setup = arranged(tmp_path, a_pool(), small, a_workflow(stages=stages), a_secret())
    workflow = setup.workflows["shop-questions"]
    assert [(stage.model, stage.pools) for stage in workflow.stages] == [
        ("tiny", frozenset({"small"})),
        (MODEL, frozenset({"a100"})),
    ]
    assert setup.problems == ()


def test_a_stage_without_a_pool_is_a_problem_and_no_error(tmp_path: Path) -> None:
    setup = arranged(tmp_path, a_workflow(), a_secret())
    assert {stage.pools for stage in setup.workflows["shop-questions"].stages} == {frozenset()}
    assert "has no pool" in setup.problems[0]


def test_the_first_workflow_sets_the_policy_and_a_disagreement_is_told(tmp_path: Path) -> None:
    setup = arranged(
        tmp_path,
        a_pool(),
        a_workflow("first", scheduling={"policy": "RoundRobin"}),
        a_workflow("second", scheduling={"policy": "HexGenFlow", "alpha": {"value": 0.4}}),
        a_secret(),
    )
    assert policy_of(setup).name == "RoundRobin"
    assert dict(parameters_of(setup, "second")) == {"alpha": 0.4}
    assert "RoundRobin of 'first' is in force for all" in setup.problems[0]


def test_each_workflow_has_a_fairness_of_its_own(tmp_path: Path) -> None:
    setup = arranged(
        tmp_path,
        a_pool(),
        a_workflow("first", scheduling={"fairness": {"value": 1}}),
        a_workflow("second"),
        a_secret(),
    )
    assert dict(parameters_of(setup, "first")) == {"fairness": 1.0}
    assert dict(parameters_of(setup, "second")) == {}


def test_without_a_workflow_the_default_policy_is_in_force() -> None:
    assert policy_of(Configuration()).name == "LeastHarm"


def test_a_tenant_whose_key_is_missing_is_a_problem_and_stays_out(tmp_path: Path) -> None:
    tenant = {"name": "analytics", "apiKeySecretRef": {"name": "keys", "key": "analytics"}}
    setup = arranged(tmp_path, a_pool(), a_workflow(tenants=[tenant]), a_secret())
    assert "Tenant 'analytics'" in setup.problems[0]
    assert setup.doorkeeper.keys == {}
    assert setup.doorkeeper.tenants["shop-questions"][0].keyed


def test_a_tenant_has_the_weight_that_its_resource_gives(tmp_path: Path) -> None:
    tenants = [{"name": "support", "weight": 5}]
    setup = arranged(tmp_path, a_pool(), a_workflow(tenants=tenants), a_secret())
    assert [tenant.weight for tenant in setup.doorkeeper.tenants["shop-questions"]] == [5.0]


def test_no_secret_is_shown_by_a_configuration(tmp_path: Path) -> None:
    tenant = {"name": "analytics", "apiKeySecretRef": {"name": "keys", "key": "analytics"}}
    setup = arranged(
        tmp_path, a_pool(), a_workflow(tenants=[tenant]), a_secret(), a_secret("keys", analytics="hush")
    )
    assert setup.workflows["shop-questions"].databases["shop"].dsn
    assert "hush" not in repr(setup)
    assert "shop.sqlite" not in repr(setup)


def test_the_secrets_among_the_resources_serve_where_there_is_no_folder(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    setup = FileSource([laptop.resources], None).read()
    dsn = setup.workflows["shop-questions"].databases["shop"].dsn
    assert dsn == f"sqlite:///{laptop.resources / 'shop.sqlite'}"


async def a_watch(laptop: Laptop) -> ConfigurationWatch:
    watch = ConfigurationWatch(FileSource([laptop.resources], None))
    await watch.load()
    return watch


async def test_files_that_cannot_be_looked_at_for_a_while_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = await a_watch(a_laptop(tmp_path / "laptop"))
    before = watch.current

    def too_many_files(self: Path, pattern: str) -> list[Path]:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "glob", too_many_files)
        await watch.reload()
        assert "Too many open files" in (watch.error or "")
        assert watch.current is before
    await watch.reload()
    assert watch.error is None
    assert watch.current.workflows.keys() == before.workflows.keys()


async def test_only_a_change_is_read_again(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    watch = await a_watch(laptop)
    seen: list[Configuration] = []
    watch.subscribe(seen.append)
    await watch.reload()
    assert len(seen) == 1
    laptop.write_workflow(slo={"deadlineSeconds": 7})
    await watch.reload()
    assert [list(each.workflows) for each in seen] == [["shop-questions"]] * 2
    assert seen[-1].workflows["shop-questions"].workflow.spec.slo.deadline_seconds == 7
    assert (watch.reloads, watch.error) == (1, None)


@pytest.mark.parametrize("content", ["kind: [\n", "", "kind: GPUPool\n"])
async def test_a_change_that_cannot_be_read_changes_nothing(tmp_path: Path, content: str) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    watch = await a_watch(laptop)
    refused: list[str] = []
    watch.on_refused = lambda: refused.append("refused")
    before = watch.current
    (laptop.resources / "pools.yaml").write_text(content, encoding="utf-8")
    await watch.reload()
    assert watch.current is before
    assert watch.error is not None
    assert refused == ["refused"]


async def test_a_database_is_opened_once_and_anew_when_its_description_changes(tmp_path: Path) -> None:
    databases = Databases()
    databases.configure(arranged(tmp_path, a_pool(), a_workflow(), a_secret()))
    async with databases.lend("shop-questions", "shop") as first:
        async with databases.lend("shop-questions", "shop") as second:
            assert first is second
        databases.configure(
            arranged(tmp_path, a_pool(), a_workflow(), a_secret("shop", dsn="sqlite:///other.sqlite"))
        )
        async with databases.lend("shop-questions", "shop") as third:
            assert third is not first
    await databases.close()


async def test_reading_ahead_is_not_broken_off_in_the_middle_of_a_database(tmp_path: Path) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    ends: list[str] = []

    class Slow(ScriptedDatabase):
        async def schema(self) -> Schema:
            begun.set()
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise
            ends.append("read")
            raise DatabaseUnavailable("Unreachable", "enough")

    databases = Databases(lambda setup: Slow(a_schema(), lambda _: a_result((1,))))
    databases.configure(arranged(tmp_path, a_pool(), a_workflow(), a_secret()))
    await begun.wait()
    databases.configure(
        arranged(tmp_path, a_pool(), a_workflow(), a_secret("shop", dsn="sqlite:///o.sqlite"))
    )
    closing = asyncio.create_task(databases.close())
    await asyncio.sleep(0)
    may_end.set()
    await closing
    assert ends == ["read"]


async def test_a_database_that_is_gone_or_has_no_address_cannot_be_lent(tmp_path: Path) -> None:
    databases = Databases()
    with pytest.raises(DatabaseUnavailable, match="no database"):
        async with databases.lend("shop-questions", "shop"):
            pass
    databases.configure(arrange(resources_of(a_pool(), a_workflow()), tmp_path))
    with pytest.raises(DatabaseUnavailable, match="has no address") as unavailable:
        async with databases.lend("shop-questions", "shop"):
            pass
    assert str(tmp_path) not in unavailable.value.message
    await databases.close()


async def test_a_database_that_cannot_be_used_is_logged_before_anybody_asks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    databases = Databases()
    databases.configure(arranged(tmp_path, a_pool(), a_workflow(), a_secret()))
    await eventually(lambda: "cannot be answered now" in caplog.text)
    await databases.close()
    assert "'shop'" in caplog.text


async def test_what_is_left_out_of_a_database_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = a_sqlite_file(tmp_path, "CREATE TABLE t (a); CREATE VIEW broken AS SELECT gone FROM t;")
    databases = Databases()
    databases.configure(arranged(tmp_path, a_pool(), a_workflow(), a_secret("shop", dsn=f"sqlite:///{file}")))
    await eventually(lambda: "broken: left out" in caplog.text)
    await databases.close()
