"""The operator goes, or its kinds do, in whatever order: nothing is stuck and nothing comes back."""

from collections.abc import Iterator

import pytest
import yaml

from support.apiserver import ApiServer
from support.controllers import ControlPlane
from support.definitions import DEFINITIONS, FILES, define
from support.objects import Objects
from support.operators import OperatorProcess, Operators
from support.resources import pool_data, workflow_data
from support.waiting import until


def fill(objects: Objects, operator: OperatorProcess) -> None:
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    objects.apply(workflow_data("shop", tuning={"mode": "Recommend"}))
    operator.until_quiet()


def test_a_namespace_that_is_deleted_after_the_operator_has_gone_ends(
    api_server: ApiServer, operator: OperatorProcess, objects: Objects
) -> None:
    fill(objects, operator)
    operator.kill()
    path = f"/api/v1/namespaces/{objects.namespace}"
    api_server.api.delete(path)
    until(lambda: not api_server.api.exists(path), seconds=120)


def test_a_namespace_that_is_deleted_under_the_operators_eyes_ends_and_is_left_alone(
    api_server: ApiServer, operators: Operators, objects: Objects
) -> None:
    # Rights and Lease of its own are elsewhere, as when it is installed: they do not go with the namespace.
    operator = operators.start()
    operator.until_leading()
    fill(objects, operator)
    path = f"/api/v1/namespaces/{objects.namespace}"
    api_server.api.delete(path)
    until(lambda: not api_server.api.exists(path), seconds=120)
    assert "Traceback" not in operator.log()


def test_what_is_there_is_left_as_it_is_by_an_operator_that_comes_back(
    operator: OperatorProcess, objects: Objects
) -> None:
    fill(objects, operator)
    before = {name: each["metadata"]["resourceVersion"] for name, each in objects.children().items()}
    operator.stop()
    operator.start()
    operator.until_leading()
    until(lambda: operator.metrics().get("hexflow_operator_objects", 0) > 8, seconds=30)
    operator.until_quiet()
    assert {name: each["metadata"]["resourceVersion"] for name, each in objects.children().items()} == before


@pytest.fixture
def afterwards(control_plane: ControlPlane, api_server: ApiServer) -> Iterator[None]:
    """Define the kinds anew, for the tests that follow."""
    yield
    define(api_server.api)


@pytest.mark.usefixtures("afterwards")
def test_when_the_kinds_are_deleted_the_operator_ends_and_once_they_are_back_it_serves_them(
    api_server: ApiServer, operator: OperatorProcess, objects: Objects
) -> None:
    fill(objects, operator)
    names = [yaml.safe_load(file.read_text(encoding="utf-8"))["metadata"]["name"] for file in FILES]
    for name in names:
        api_server.api.delete(f"{DEFINITIONS}/{name}")
    until(lambda: not any(api_server.api.exists(f"{DEFINITIONS}/{name}") for name in names), seconds=60)
    until(lambda: objects.children() == {}, seconds=120)
    until(lambda: not operator.running, seconds=60)
    define(api_server.api)
    operator.start()  # as the kubelet does with one that ended
    operator.until_leading()
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    until(lambda: objects.there("Deployment", "a100-engine"), seconds=60)
