"""What the questions' door refuses, each with one readable message: bad input, strangers, too much at once."""

import asyncio
import json
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hexflow_router.configuration import arrange
from hexflow_scheduler import decode, replay
from support.resources import a_workflow, pool_data, resources_of
from support.router import (
    QUESTION,
    WORKFLOW,
    Laptop,
    a_laptop,
    a_router,
    secret_data,
    write_yaml,
)
from support.waiting import eventually

PATH = f"/v1/workflows/{WORKFLOW}/queries"


@pytest.mark.parametrize(
    ("body", "status", "code", "says"),
    [
        (b'{"question": "q"', 400, "invalid_json", "not valid JSON"),
        (b'{"question": "\xff\xfe"}', 400, "invalid_utf8", "not UTF-8"),
        (b"{}", 400, "invalid_request", "`question`: is needed"),
        (b'{"question": "q", "databse": "shop"}', 400, "invalid_request", "did you mean `database`"),
        (b'{"question": "q", "deadlineSeconds": -5}', 400, "invalid_request", "greater than 0"),
        (b'{"question": "q", "deadlineSeconds": NaN}', 400, "invalid_json", "not valid JSON"),
        (b'{"question": "q", "deadlineSeconds": 1e300}', 400, "invalid_request", "86400"),
        (b'{"question": "q", "database": "shp"}', 404, "database_not_found", "Did you mean 'shop'"),
        (b'{"question": "' + b"q" * 30_000 + b'"}', 413, "question_too_long", "30000 characters"),
        (b'{"question": "' + b"q" * 5_000_000 + b'"}', 413, "body_too_large", "larger than"),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else None,
)
async def test_a_bad_question_gets_one_readable_message(
    tmp_path: Path, body: bytes, status: int, code: str, says: str
) -> None:
    async with a_router(a_laptop(tmp_path / "laptop"), instances=()) as router:
        response = await router.client.post(PATH, content=body)
        assert router.router.driver.outstanding == 0
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code)
    assert says in error["message"]
    assert error["type"]


async def test_what_is_not_there_is_answered_with_what_there_is(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop"), instances=()) as router:
        workflow = await router.ask(workflow="shop-question")
        query = await router.client.get("/v1/queries/unknown")
        path = await router.client.get("/v1/nothing")
        method = await router.client.put(PATH)
        slash = await router.client.get("/v1/workflows/")
    assert (workflow.status_code, workflow.json()["error"]["code"]) == (404, "workflow_not_found")
    assert "Did you mean 'shop-questions'" in workflow.json()["error"]["message"]
    assert (query.status_code, query.json()["error"]["code"]) == (404, "query_not_found")
    assert (path.status_code, path.json()["error"]["code"]) == (404, "not_found")
    assert (method.status_code, method.json()["error"]["code"]) == (405, "method_not_allowed")
    assert slash.status_code == 404, "a redirect would be made from the Host field"


def break_missing(laptop: Laptop) -> None:
    (laptop.resources / "shop.sqlite").unlink()


def break_content(laptop: Laptop) -> None:
    (laptop.resources / "shop.sqlite").write_bytes(b"this is no database at all " * 200)


def break_folder(laptop: Laptop) -> None:
    (laptop.resources / "shop.sqlite").unlink()
    (laptop.resources / "shop.sqlite").mkdir()


@pytest.mark.parametrize("spoil", [break_missing, break_content, break_folder])
async def test_a_database_that_cannot_be_used_ends_the_query_with_a_reason(
    tmp_path: Path, spoil: Any
) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    spoil(laptop)
    async with a_router(laptop, instances=()) as router:
        response = await router.ask()
    answer = response.json()
    assert response.status_code == 503
    assert (answer["status"], answer["reason"]) == ("Failed", "DatabaseUnavailable")
    assert "'shop'" in answer["error"]["message"]
    assert str(tmp_path) not in response.text


@pytest.mark.parametrize("dsn", ["postgresql://me:hunter2@db/shop", "hunter2", ""])
async def test_a_wrong_address_is_told_and_never_shown(tmp_path: Path, dsn: str) -> None:
    secrets = tmp_path / "secrets"
    (secrets / "shop").mkdir(parents=True)
    (secrets / "shop" / "dsn").write_text(dsn)
    async with a_router(a_laptop(tmp_path / "laptop"), instances=(), secrets_dir=secrets) as router:
        response = await router.ask()
        details = await router.admin.get("/readyz")
    assert (response.status_code, response.json()["reason"]) == (503, "DatabaseUnavailable")
    assert "hunter2" not in response.text + details.text


async def test_a_database_that_comes_back_is_used_again(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    file = laptop.resources / "shop.sqlite"
    aside = file.rename(tmp_path / "aside")
    async with a_router(laptop) as router:
        assert (await router.ask()).status_code == 503
        aside.rename(file)
        assert (await router.ask()).json()["rows"] == [[3]]
        with sqlite3.connect(file) as connection:
            connection.execute("INSERT INTO customers (name, city) VALUES ('new', 'Berlin')")
        connection.close()
        assert (await router.ask()).json()["rows"] == [[4]]


def a_laptop_with_keys(folder: Path, **analytics: Any) -> Laptop:
    key = {"name": "keys", "key": "analytics"}
    tenants = [
        {"name": "analytics", "sloClass": "gold", "apiKeySecretRef": key, **analytics},
        {"name": "support", "apiKeySecretRef": {"name": "keys", "key": "support"}},
    ]
    laptop = a_laptop(folder, tenants=tenants, slo={"classes": [{"name": "gold", "deadlineSeconds": 20}]})
    write_yaml(
        laptop.resources / "keys.yaml", secret_data("keys", analytics="key-of-gold", support="key-of-tin")
    )
    return laptop


GOLD = {"authorization": "Bearer key-of-gold"}
TIN = {"authorization": "Bearer key-of-tin"}


async def test_tenants_are_known_by_their_keys(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with a_router(a_laptop_with_keys(tmp_path / "laptop")) as router:
        none = await router.ask()
        wrong = await router.ask(headers={"authorization": "Bearer guessed"})
        gold = await router.ask(headers=GOLD)
        tin = await router.ask(headers=TIN | {"prefer": "respond-async"})
        address = tin.headers["location"]
        theirs = [await router.client.get(address, headers=GOLD), await router.client.get(address)]
        cancel = await router.client.delete(address, headers=GOLD)
        mine = await router.client.get(address, headers=TIN)
        shown = (await router.client.get("/v1/workflows")).json()["workflows"]
        debug = [(await router.admin.get(path)).text for path in ("/metrics", "/debug/scheduler", "/readyz")]
    assert (none.status_code, none.json()["error"]["code"]) == (401, "api_key_missing")
    assert none.headers["www-authenticate"] == "Bearer"
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "invalid_api_key")
    assert (gold.json()["tenant"], gold.json()["deadlineSeconds"]) == ("analytics", 20)
    assert (tin.json()["tenant"], tin.json()["deadlineSeconds"]) == ("support", 60)
    assert [response.status_code for response in (*theirs, cancel)] == [404, 401, 404]
    assert mine.status_code == 200
    assert shown == []
    for text in (caplog.text, none.text, wrong.text, gold.text, *debug):
        assert "key-of" not in text
        assert "guessed" not in text


async def test_a_key_of_another_workflow_is_forbidden(tmp_path: Path) -> None:
    laptop = a_laptop_with_keys(tmp_path / "laptop")
    text = (laptop.resources / "workflow.yaml").read_text(encoding="utf-8")
    (laptop.resources / "other.yaml").write_text(
        text.replace("shop-questions", "other").replace("key: support", "key: other"), encoding="utf-8"
    )
    write_yaml(
        laptop.resources / "keys.yaml",
        secret_data("keys", analytics="key-of-gold", support="key-of-tin", other="key-of-lead"),
    )
    async with a_router(laptop, instances=()) as router:
        response = await router.ask(headers={"authorization": "Bearer key-of-lead"})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden_workflow")


async def test_a_tenant_asks_no_more_than_it_may(tmp_path: Path) -> None:
    laptop = a_laptop_with_keys(tmp_path / "laptop", queriesPerMinute=2)
    async with a_router(laptop, instances=(), time_scale=1) as router:
        later = {"prefer": "respond-async"}
        responses = [await router.ask(headers=GOLD | later) for _ in range(3)]
        other = await router.ask(headers=TIN | later)
    assert [response.status_code for response in responses] == [202, 202, 429]
    assert responses[-1].json()["error"]["code"] == "rate_limited"
    assert int(responses[-1].headers["retry-after"]) >= 1
    assert other.status_code == 202


async def test_a_tenant_has_no_more_in_flight_than_it_may(tmp_path: Path) -> None:
    async with a_router(a_laptop_with_keys(tmp_path / "laptop", maxInFlight=1)) as router:
        await router.fault("freeze:100000")
        first = await router.ask(headers=GOLD | {"prefer": "respond-async"})
        second = await router.ask(headers=GOLD)
        await router.client.delete(first.headers["location"], headers=GOLD)
        await router.fault("slow:1")
        third = await router.ask(headers=GOLD | {"prefer": "respond-async"})
    assert (second.status_code, second.json()["error"]["code"]) == (429, "too_many_in_flight")
    assert third.status_code == 202


async def test_a_router_runs_no_more_queries_than_it_may(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop"), instances=(), max_running_queries=1) as router:
        await router.ask(headers={"prefer": "respond-async"})
        response = await router.ask()
    assert (response.status_code, response.json()["error"]["code"]) == (429, "too_many_queries")


async def test_without_a_pool_for_its_model_a_question_is_refused_at_once(tmp_path: Path) -> None:
    async with a_router(a_laptop(tmp_path / "laptop"), instances=()) as router:
        router.router.watch.apply(arrange(resources_of(a_workflow(WORKFLOW)), tmp_path))
        response = await router.ask()
        details = (await router.admin.get("/readyz")).json()
    assert (response.status_code, response.json()["error"]["code"]) == (503, "no_instance")
    assert "has no pool" in " ".join(details["configuration"]["problems"])


# Configuration that changes


async def test_a_changed_configuration_is_in_force_without_a_restart(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    async with a_router(laptop) as router:
        laptop.write_workflow(
            slo={"deadlineSeconds": 33}, scheduling={"exponent": {"value": 4.0}, "fairness": {"value": 1}}
        )

        async def changed() -> bool:
            return bool((await router.ask()).json()["deadlineSeconds"] == 33)

        await eventually(changed, seconds=10)
        state = (await router.admin.get("/debug/scheduler")).json()
    assert state["workflowParameters"][WORKFLOW] == {"exponent": 4.0, "fairness": 1.0}


async def test_another_policy_takes_over_when_no_call_is_outstanding(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hexflow")
    laptop = a_laptop(tmp_path / "laptop", scheduling={"policy": "HexGenFlow", "alpha": {"value": 0.7}})
    async with a_router(laptop) as router:
        await router.fault("slow:20")
        asking = asyncio.create_task(router.ask())
        await eventually(lambda: router.router.driver.outstanding > 0)
        laptop.write_workflow(scheduling={"policy": "RoundRobin"})
        await eventually(lambda: router.router.watch.reloads == 1, seconds=10)
        meanwhile = (await router.admin.get("/readyz")).json()["policy"]
        await router.fault("slow:1")
        first = (await asking).json()
        await eventually(lambda: router.router.succession.policy == "RoundRobin")
        second = (await router.ask()).json()
        state = (await router.admin.get("/debug/scheduler")).json()
        lines = (await router.admin.get("/v1/events")).text.splitlines()
    assert meanwhile == {"inForce": "HexGenFlow", "named": "RoundRobin"}
    assert caplog.text.count("takes over from HexGenFlow when no call is outstanding") == 1
    assert (first["status"], first["policy"]) == ("Succeeded", "HexGenFlow")
    assert (second["status"], second["policy"]) == ("Succeeded", "RoundRobin")
    assert len(state["instances"]) == 2
    assert state["workflowParameters"] == {}
    assert sum('"n":0,' in line for line in lines) == 2
    assert replay(decode(line) for line in lines).difference is None


async def test_a_bad_configuration_leaves_the_last_good_one_in_force(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    pools = laptop.resources / "pools.yaml"
    good = pools.read_text(encoding="utf-8")
    async with a_router(laptop) as router:
        write_yaml(pools, pool_data("a100", emulated=True), pool_data("a100", emulated=True))
        await eventually(lambda: router.router.watch.error is not None, seconds=10)
        answered = await router.ask()
        tenants = (await router.client.get("/readyz")).json()
        details = (await router.admin.get("/readyz")).json()
        invalid = await router.metric("hexflow_configuration_valid")
        pools.write_text(good, encoding="utf-8")
        await eventually(lambda: router.router.watch.error is None, seconds=10)
        valid = await router.metric("hexflow_configuration_valid")
    assert answered.json()["rows"] == [[3]]
    assert (tenants["ready"], tenants["configurationCurrent"]) == (True, False)
    assert "pools.yaml" in details["configuration"]["error"]
    assert "a100" in details["configuration"]["error"]
    assert (invalid, valid) == (0, 1)


async def test_a_changed_key_is_in_force_without_a_restart(tmp_path: Path) -> None:
    laptop = a_laptop_with_keys(tmp_path / "laptop")
    async with a_router(laptop, instances=()) as router:
        write_yaml(laptop.resources / "keys.yaml", secret_data("keys", analytics="new-key", support="s"))

        async def changed() -> bool:
            listed = await router.client.get("/v1/workflows", headers={"authorization": "Bearer new-key"})
            return bool(listed.json()["workflows"])

        await eventually(changed, seconds=10)
        old = await router.ask(headers=GOLD)
    assert old.status_code == 401


async def test_a_missing_secret_closes_the_door_and_is_told(tmp_path: Path) -> None:
    laptop = a_laptop_with_keys(tmp_path / "laptop")
    secrets = tmp_path / "secrets"
    (secrets / "shop").mkdir(parents=True)
    (secrets / "shop" / "dsn").write_text(f"sqlite:///{laptop.resources / 'shop.sqlite'}\n")
    async with a_router(laptop, secrets_dir=secrets) as router:
        refused = await router.ask(headers=GOLD)
        problems = (await router.admin.get("/readyz")).json()["configuration"]["problems"]
        (secrets / "keys").mkdir()
        (secrets / "keys" / "analytics").write_text("key-of-gold\n")

        async def opened() -> bool:
            return (await router.ask(headers=GOLD)).status_code == 200

        await eventually(opened, seconds=10)
    assert refused.status_code == 401
    assert "Tenant 'analytics'" in " ".join(problems)


async def test_running_queries_keep_the_configuration_they_began_with(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    async with a_router(laptop) as router:
        await router.fault("slow:20")
        asking = asyncio.create_task(router.ask())
        await eventually(lambda: router.router.driver.outstanding > 0)
        laptop.write_workflow(slo={"deadlineSeconds": 5}, databases=[json.loads(OTHER_DATABASE)])
        await eventually(lambda: router.router.watch.reloads == 1, seconds=10)
        gone = await router.ask(QUESTION, database="shop")
        await router.fault("slow:1")
        answer = (await asking).json()
    assert (answer["status"], answer["rows"], answer["deadlineSeconds"]) == ("Succeeded", [[3]], 60)
    assert gone.status_code == 404


OTHER_DATABASE = '{"name": "other", "dialect": "sqlite", "dsnSecretRef": {"name": "shop", "key": "dsn"}}'
