"""The definitions are generated, fresh, and say to the API server all that the models say."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import BaseModel, Field

from hexflow_api import RULES
from hexflow_api.crd import CUSTOM_RESOURCES, NotStructuralError, as_yaml, definition, structural
from support.goodresources import GOOD

ROOT = Path(__file__).parents[3]
FILES = {each.name: ROOT / "crds" / f"{each.name}.yaml" for each in CUSTOM_RESOURCES}
LARGEST_DEFINITION = 200_000


def schema_of(name: str) -> dict[str, Any]:
    loaded = yaml.safe_load(FILES[name].read_text(encoding="utf-8"))
    schema: dict[str, Any] = loaded["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def places(schema: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema below and including ``schema``."""
    yield place, schema
    for name, field in schema.get("properties", {}).items():
        yield from places(field, f"{place}.{name}")
    if "items" in schema:
        yield from places(schema["items"], f"{place}[]")
    if "additionalProperties" in schema:
        yield from places(schema["additionalProperties"], f"{place}.*")


def test_the_committed_definitions_are_what_the_script_makes() -> None:
    done = subprocess.run([sys.executable, ROOT / "crds" / "define_resources.py", "--check"], check=False)
    assert done.returncode == 0, "stale: run make generate"


@pytest.mark.parametrize("name", FILES)
def test_a_definition_is_small_enough_to_be_applied(name: str) -> None:
    """`kubectl apply` keeps a copy in an annotation, of which all together have 256 kB."""
    assert FILES[name].stat().st_size < LARGEST_DEFINITION


@pytest.mark.parametrize("name", FILES)
def test_every_field_is_described_and_every_list_map_and_text_is_bounded(name: str) -> None:
    found = dict(places(schema_of(name)))
    ours = {place: schema for place, schema in found.items() if place.startswith((".spec", ".status"))}
    assert len(ours) > 30
    for place, schema in ours.items():
        kind = schema.get("type")
        if not place.endswith(("[]", ".*")):
            assert schema.get("description", "").endswith("."), place
        if kind == "array":
            assert "maxItems" in schema, place
        if kind == "string":
            assert {"maxLength", "enum"} & set(schema), place
        if kind == "object" and "properties" not in schema and not place.endswith("[]"):
            assert "maxProperties" in schema, place


@pytest.mark.parametrize("name", FILES)
def test_a_schema_has_no_default_for_it_would_show_up_as_drift(name: str) -> None:
    assert [place for place, schema in places(schema_of(name)) if "default" in schema] == []


def test_what_an_absent_field_means_stands_in_its_description() -> None:
    spec = schema_of("gpupools.hexflow.dev")["properties"]["spec"]["properties"]
    assert spec["prefixCaching"]["description"].endswith("Default: true.")


@pytest.mark.parametrize(
    ("name", "place", "key"),
    [
        ("gpupools.hexflow.dev", ".spec.endpoints", "url"),
        ("gpupools.hexflow.dev", ".status.conditions", "type"),
        ("texttosqlworkflows.hexflow.dev", ".spec.databases", "name"),
        ("texttosqlworkflows.hexflow.dev", ".spec.slo.classes", "name"),
        ("texttosqlworkflows.hexflow.dev", ".spec.stages", "name"),
        ("texttosqlworkflows.hexflow.dev", ".spec.tenants", "name"),
        ("texttosqlworkflows.hexflow.dev", ".status.conditions", "type"),
    ],
)
def test_a_list_of_named_things_is_a_map_to_the_api_server(name: str, place: str, key: str) -> None:
    found = dict(places(schema_of(name)))[place]
    assert (found["x-kubernetes-list-type"], found["x-kubernetes-list-map-keys"]) == ("map", [key])


def test_every_field_of_a_spec_is_in_some_good_object_of_the_tests() -> None:
    """So that a real API server has seen each."""

    def given(value: Any, place: str) -> Iterator[str]:
        yield place
        if isinstance(value, dict):
            for key, item in value.items():
                yield from given(item, f"{place}.{key}")
        if isinstance(value, list):
            for item in value:
                yield from given(item, f"{place}[]")

    for each in CUSTOM_RESOURCES:
        objects = [data for data in GOOD.values() if data["kind"] == each.model.__name__]
        seen = {place for data in objects for place in given(data["spec"], ".spec")}
        wanted = {place for place, _ in places(schema_of(each.name)) if place.startswith(".spec")}
        assert {place for place in wanted if not place.endswith(".*")} - seen == set()


def test_every_rule_is_in_its_definition_once() -> None:
    told = [
        (each.model.__name__, rule["rule"], rule["message"])
        for each in CUSTOM_RESOURCES
        for _, schema in places(schema_of(each.name))
        for rule in schema.get("x-kubernetes-validations", ())
    ]
    assert sorted(told) == sorted((rule.kind, rule.cel, rule.message) for rule in RULES)


CEL_SINCE = {
    **dict.fromkeys(("has", "all", "exists", "exists_one", "map", "filter"), "1.25"),
    **dict.fromkeys(("size", "int", "startsWith", "contains", "matches", "replace"), "1.25"),
    **dict.fromkeys(("url", "isURL", "getPort"), "1.25"),
}
"""What rules call -> the Kubernetes version that takes it in a new definition; two variables are a matter of their own."""


def test_every_function_of_cel_that_is_used_is_one_whose_age_is_known() -> None:
    used = {name for rule in RULES for name in re.findall(r"(\w+)\(", re.sub(r"r?'[^']*'", "''", rule.cel))}
    assert used == set(CEL_SINCE)


def test_only_what_names_something_earlier_needs_two_variables() -> None:
    """They ask for Kubernetes 1.33, the oldest that is supported (ADR 0013)."""
    two = [rule.message for rule in RULES if re.search(r"\b(all|exists)\(\w+, \w+,", rule.cel)]
    assert len(two) == 2
    assert all("earlier" in message or "before" in message for message in two)


def test_a_definition_says_the_same_however_often_it_is_made() -> None:
    for each in CUSTOM_RESOURCES:
        assert as_yaml(definition(each)) == as_yaml(definition(each))
        assert yaml.safe_load(as_yaml(definition(each))) == definition(each)
        assert "&id" not in as_yaml(definition(each))


# The translation itself


class Inner(BaseModel):
    """An inner thing."""

    kind: Literal["Only"]


class Some(BaseModel):
    above: Annotated[float, Field(gt=0, lt=2)]
    port: int | str
    inner: Annotated[Inner, Field(description="The thing within.")]
    maybe: Inner | None = None
    native: dict[str, Any]
    anything: Any
    named: dict[str, Inner]
    default: bool = Field(default=True, description="Whether.")


def test_what_json_schema_says_otherwise_is_translated() -> None:
    inner = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string", "enum": ["Only"]}},
    }
    described = {"description": "An inner thing."} | inner
    assert structural(Some)["properties"] == {
        "above": {
            "type": "number",
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": 2,
            "exclusiveMaximum": True,
        },
        "port": {"x-kubernetes-int-or-string": True},
        "inner": {"description": "The thing within."} | inner,
        "maybe": described,
        "native": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "anything": {"x-kubernetes-preserve-unknown-fields": True},
        "named": {"type": "object", "additionalProperties": inner},
        "default": {"type": "boolean", "description": "Whether. Default: true."},
    }


class Alternatives(BaseModel):
    field: int | bool


class Pair(BaseModel):
    field: tuple[int, str]


class Unique(BaseModel):
    field: set[str]


class Open(BaseModel, extra="allow"):
    __pydantic_extra__: dict[str, int]
    field: int


class Keys(BaseModel):
    field: dict[Annotated[str, Field(max_length=3)], str]


class BothBounds(BaseModel):
    field: Annotated[int, Field(json_schema_extra={"minimum": 1, "exclusiveMinimum": 0})]


class Endless(BaseModel):
    field: "Endless | None" = None


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Alternatives, "spec.field: has alternatives"),
        (Pair, "spec.field: has prefixItems"),
        (Unique, "spec.field: has uniqueItems"),
        (Open, "spec: has fields of its own and others besides"),
        (Keys, "spec.field: has propertyNames"),
        (BothBounds, "spec.field: has both minimum and exclusiveMinimum"),
        (Endless, "Endless holds itself"),
    ],
)
def test_what_a_structural_schema_cannot_say_is_refused_with_its_place(
    model: type[BaseModel], words: str
) -> None:
    with pytest.raises(NotStructuralError, match=words):
        structural(model, place="spec")
