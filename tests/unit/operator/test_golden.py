from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.version import Version
from pydantic import BaseModel

from hexflow_api.gpupool import GPUPoolSpec
from hexflow_api.workflow import Router
from hexflow_operator.defaults import Defaults
from hexflow_operator.plan import plan
from support.golden import GOLDEN, NOW, RELEASES, cases, observed_of, pod_templates, rendered

REMEDY = "run `make golden`, read the difference, and commit it if it is meant"
LAST_RELEASE = max(
    GOLDEN.glob(f"{RELEASES}*-pods"),
    key=lambda path: Version(path.name.removeprefix(RELEASES).removesuffix("-pods")),
)


@pytest.mark.parametrize("case", cases())
def test_a_resource_asks_for_exactly_these_children(case: str) -> None:
    folder = GOLDEN / case / "children"
    expected = {path.name: path.read_text() for path in folder.glob("*.yaml")} if folder.exists() else {}
    assert rendered(case) == expected, REMEDY


def fields_of(model: type[BaseModel], place: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        path = f"{place}{field.alias or name}"
        models = [each for each in _types(field.annotation) if issubclass(each, BaseModel)]
        yield path
        for each in models:
            yield from fields_of(each, f"{path}.")


def _types(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for each in getattr(annotation, "__args__", ()):
        yield from _types(each)


def given_in(value: Any, place: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from given_in(item, place)
    if isinstance(value, dict):
        for key, item in value.items():
            path = f"{place}.{key}".removeprefix(".")
            yield path
            yield from given_in(item, path)


def test_each_field_of_a_pool_and_of_a_router_is_in_a_golden_case() -> None:
    observed = [observed_of(case)[1] for case in cases()]
    pools = {path for each in observed for pool in each.pools for path in given_in(pool["spec"])}
    routers = {
        path for each in observed for flow in each.workflows for path in given_in(flow["spec"].get("router"))
    }
    assert set(fields_of(GPUPoolSpec)) - pools == set()
    assert {path for path in fields_of(Router) if path.count(".") == 0} - routers == set()


@pytest.mark.parametrize("stored", sorted((GOLDEN / "stored").glob("*.yaml")), ids=lambda path: path.stem)
def test_what_a_real_api_server_made_of_the_children_is_no_difference(stored: Path) -> None:
    key, observed = observed_of(stored.stem)
    there = tuple(yaml.safe_load_all(stored.read_text()))
    planned = plan(key, replace(observed, children=there), Defaults(), NOW)
    assert (planned.apply, planned.delete) == ((), ())
    assert len(there) == len(plan(key, observed, Defaults(), NOW).apply)


@pytest.mark.parametrize("name", sorted(path.name for path in LAST_RELEASE.glob("*.yaml")))
def test_no_pod_of_the_last_release_is_restarted_by_an_upgrade(name: str) -> None:
    (now,) = (text for _, text in pod_templates(name.removesuffix(".yaml")))
    assert yaml.safe_load(now) == yaml.safe_load((LAST_RELEASE / name).read_text()), (
        "this change restarts pods in every cluster when the operator is upgraded; if it must be, say so in the"
        " changelog and run `python tests/support/golden.py --release VERSION` in a commit of its own"
    )
