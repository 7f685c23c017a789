from pathlib import Path

import pytest

from hexflow_cli.exitcode import CommandError
from hexflow_cli.statefile import StateFile, TenantEntry, WorkflowEntry
from hexflow_cli.target import Target, choose_workflow, find_target, router_url


def a_state(folder: Path, *workflows: str) -> StateFile:
    for name in ("analytics", "support"):
        (folder / name).write_text(f"key-of-{name}\n")
    tenants = tuple(TenantEntry(name=name, api_key_file=folder / name) for name in ("analytics", "support"))
    return StateFile(
        url="http://127.0.0.1:9000",
        admin_url="http://127.0.0.1:9001",
        pid=1,
        started=1.0,
        workflows=tuple(WorkflowEntry(name=name, tenants=tenants) for name in workflows),
    )


def test_the_router_is_found_by_option_then_state_file_then_the_usual_port(tmp_path: Path) -> None:
    state = a_state(tmp_path, "w")
    assert router_url("http://there:1/", state) == "http://there:1"
    assert router_url("there:1", state) == "http://there:1"
    assert router_url(None, state) == "http://127.0.0.1:9000"
    assert router_url(None, None) == "http://127.0.0.1:8080"


@pytest.mark.parametrize("url", ["ftp://there", "http://", "://"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match=r"no URL of a router. Write it like http://127\.0\.0\.1:8080"):
        router_url(url, None)


def test_a_question_here_is_asked_by_the_first_tenant_unless_another_is_named(tmp_path: Path) -> None:
    state = a_state(tmp_path, "w")

    def find(url: str | None = None, tenant: str | None = None, api_key: str | None = None) -> Target:
        return find_target(url=url, workflow=None, tenant=tenant, api_key=api_key, state=state)

    assert find().api_key == "key-of-analytics"
    assert find(tenant="support").api_key == "key-of-support"
    assert find(api_key="mine").api_key == "mine"
    assert find(url="http://elsewhere").api_key is None
    assert find().workflows == ("w",)
    assert find(url="http://elsewhere").workflows is None


def test_a_tenant_that_nobody_knows_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(
        CommandError, match=r"No tenant 'nobody' is known here\. There are: analytics, support\."
    ):
        find_target(url=None, workflow=None, tenant="nobody", api_key=None, state=a_state(tmp_path, "w"))


def test_a_workflow_that_is_not_here_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no workflow 'x'\. There is: w\."):
        find_target(url=None, workflow="x", tenant=None, api_key=None, state=a_state(tmp_path, "w"))
    there = find_target(
        url="http://there", workflow="x", tenant=None, api_key=None, state=a_state(tmp_path, "w")
    )
    assert there.workflows is None


def test_a_tenant_elsewhere_needs_a_key() -> None:
    with pytest.raises(CommandError, match="Give its key with --api-key"):
        find_target(url="http://elsewhere", workflow=None, tenant="t", api_key=None, state=None)


def test_a_key_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    state = a_state(tmp_path, "w")
    (tmp_path / "analytics").unlink()
    with pytest.raises(CommandError, match="API key of tenant analytics cannot be read"):
        find_target(url=None, workflow=None, tenant=None, api_key=None, state=state)


def test_the_only_workflow_needs_no_name() -> None:
    assert choose_workflow(None, ["w"]) == "w"
    assert choose_workflow("other", ["w"]) == "other"
    with pytest.raises(CommandError, match="Several workflows are there: a, b"):
        choose_workflow(None, ["b", "a"])
    with pytest.raises(CommandError, match="Say which workflow"):
        choose_workflow(None, [])
