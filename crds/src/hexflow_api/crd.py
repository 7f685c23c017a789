"""CustomResourceDefinitions out of the models: what the API server is told, so that it refuses what we refuse.

A structural schema is a small part of JSON Schema. What it cannot say is refused here with the field's place,
instead of being left out in silence. The schema has no defaults: an object is read back as it was applied, and
what an absent field means stands in its description. Rules become CEL validations at their place.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final

from pydantic import BaseModel
from ruamel.yaml import YAML

from hexflow_api.gpupool import GPUPool, GPUPoolSpec
from hexflow_api.meta import API_GROUP, API_VERSION, Resource, ResourceModel
from hexflow_api.rule import Rule
from hexflow_api.status import GPUPoolStatus, ResourceStatus, TextToSQLWorkflowStatus
from hexflow_api.violation import RULES
from hexflow_api.workflow import TextToSQLWorkflow, TextToSQLWorkflowSpec

Schema = dict[str, Any]

_KEPT: Final = frozenset(
    {
        "type",
        "format",
        "pattern",
        "enum",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "required",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
    }
)
"""Keywords that mean the same in both."""
_DROPPED: Final = frozenset(
    {"title", "default", "description", "properties", "items", "additionalProperties"}
)
"""Keywords that are left out, or handled one by one."""

OLDEST_KUBERNETES: Final = "1.33"
"""The oldest API server that takes the definitions: that of the rules' CEL (ADR 0013)."""

HEADER: Final = "# Written by `make generate` from the models in hexflow_api; change those.\n"


class NotStructuralError(ValueError):
    """A model says something that a structural schema cannot say; the message has the field's place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Describe one column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomResource:
    """Hold what makes a kind of resource a kind that the API server knows."""

    model: type[Resource]
    spec: type[ResourceModel]
    status: type[ResourceStatus]
    plural: str
    short_name: str
    columns: tuple[Column, ...]
    scaled: bool = False
    """Whether it has a scale subresource, for `kubectl scale` and autoscalers."""

    @property
    def name(self) -> str:
        """The definition's name."""
        return f"{self.plural}.{API_GROUP}"


_READY: Final = (
    Column(
        name="Ready",
        path='.status.conditions[?(@.type=="Ready")].status',
        description="Whether it serves as it should.",
    ),
    Column(
        name="Reason",
        path='.status.conditions[?(@.type=="Ready")].reason',
        description="Why it does or does not.",
    ),
)
_AGE: Final = Column(
    name="Age", path=".metadata.creationTimestamp", type="date", description="Time since it was made."
)

CUSTOM_RESOURCES: Final = (
    CustomResource(
        model=GPUPool,
        spec=GPUPoolSpec,
        status=GPUPoolStatus,
        plural="gpupools",
        short_name="gpool",
        scaled=True,
        columns=(
            *_READY,
            Column(name="Model", path=".spec.model.name", description="The model that it serves."),
            Column(name="GPU", path=".spec.gpuType", description="The type of GPU."),
            Column(name="Ready/Want", path=".status.ready", description="Ready and wanted instances."),
            _AGE,
        ),
    ),
    CustomResource(
        model=TextToSQLWorkflow,
        spec=TextToSQLWorkflowSpec,
        status=TextToSQLWorkflowStatus,
        plural="texttosqlworkflows",
        short_name="t2sql",
        columns=(
            *_READY,
            Column(
                name="Alpha",
                path=".status.parameters.alpha.value",
                type="number",
                description="HexGenFlow's alpha in force.",
            ),
            Column(
                name="P95",
                path=".status.p95Seconds",
                type="number",
                description="Seconds within which 95 of 100 questions were answered.",
            ),
            Column(
                name="SLO%",
                path=".status.attainmentPercent",
                description="Percent of questions that were answered by their deadline.",
            ),
            _AGE,
        ),
    ),
)
"""The kinds of resource, in the order of their definitions."""


def definition(resource: CustomResource) -> dict[str, Any]:
    """Return the CustomResourceDefinition of ``resource``. Raises NotStructuralError."""
    kind = resource.model.__name__
    subresources: dict[str, Any] = {"status": {}}
    if resource.scaled:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.name},
        "spec": {
            "group": API_GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": resource.plural,
                "singular": kind.lower(),
                "shortNames": [resource.short_name],
                "categories": ["hexflow"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": API_VERSION.rpartition("/")[2],
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _root(resource)},
                    "subresources": subresources,
                    "additionalPrinterColumns": [_column(column) for column in resource.columns],
                }
            ],
        },
    }


def as_yaml(data: Mapping[str, Any]) -> str:
    """Return ``data`` as it is committed."""
    yaml = YAML(typ="rt", pure=True)
    yaml.default_flow_style = False
    yaml.width = 120
    yaml.representer.ignore_aliases = lambda _: True
    yaml.representer.add_representer(str, _text)
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = StringIO()
    yaml.dump(data, out)
    # a long text is broken after its blank, which no reader of YAML takes for a part of it
    return HEADER + "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _text(representer: Any, text: str) -> Any:
    # kubectl reads YAML 1.1, where a bare Off is false
    style = "'" if text.lower() in ("on", "off", "yes", "no", "y", "n") else None
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def structural(model: type[BaseModel], *, place: str = "") -> Schema:
    """Return the structural schema of ``model``: described are its fields, not itself. Raises NotStructuralError."""
    schema = model.model_json_schema(by_alias=True)
    return _Translation(schema.pop("$defs", {})).item(schema, place)


def _root(resource: CustomResource) -> Schema:
    model = resource.model
    root: Schema = {
        "type": "object",
        "description": _line(model.__doc__ or ""),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"Always {API_VERSION}."},
            "kind": {"type": "string", "description": f"Always {model.__name__}."},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {"description": "What is wanted."} | structural(resource.spec, place="spec"),
            "status": {"description": "What is so; written by the operator."}
            | structural(resource.status, place="status"),
        },
    }
    for rule in (rule for rule in RULES if rule.kind == model.__name__):
        _at(root, rule.path).setdefault("x-kubernetes-validations", []).append(_validation(rule))
    return root


def _column(column: Column) -> dict[str, str]:
    return {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.path,
        "description": column.description,
    }


def _validation(rule: Rule) -> dict[str, str]:
    validation = {"rule": rule.cel, "message": rule.message}
    return validation | ({"fieldPath": f".{rule.field}"} if rule.field else {})


def _at(schema: Schema, path: str) -> Schema:
    """Return the schema of what ``path`` names."""
    for step in path.split(".") if path else ():
        schema = schema["properties"][step.removesuffix("[*]")]
        schema = schema["items"] if step.endswith("[*]") else schema
    return schema


def _line(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class _Translation:
    """Translate one JSON Schema with its definitions."""

    definitions: Mapping[str, Schema]

    def schema(self, given: Schema, place: str, *, within: tuple[str, ...] = ()) -> Schema:
        plain, within = self._plain(given, place, within)
        if not set(plain) - _DROPPED:
            return self._described(plain, {"x-kubernetes-preserve-unknown-fields": True})
        result: Schema = {}
        for key, value in plain.items():
            if key == "const":
                result["enum"] = [value]
            elif key in ("exclusiveMinimum", "exclusiveMaximum"):
                bound = "minimum" if key == "exclusiveMinimum" else "maximum"
                if bound in plain:
                    raise NotStructuralError(
                        f"{place}: has both {bound} and {key}, which a structural schema cannot say"
                    )
                result |= {bound: value, key: True}
            elif key in _KEPT or key == "x-kubernetes-int-or-string":
                result[key] = value
            elif key not in _DROPPED:
                raise NotStructuralError(f"{place}: has {key}, which a structural schema cannot say")
        if "type" not in result and "x-kubernetes-int-or-string" not in result:
            raise NotStructuralError(f"{place}: has no one type, which a structural schema must say")
        result |= dict(self._inner(plain, place, within))
        return self._described(plain, result)

    def item(self, given: Schema, place: str, *, within: tuple[str, ...] = ()) -> Schema:
        """Return the schema of what has no name of its own: its field is described already."""
        schema = self.schema(given, place, within=within)
        schema.pop("description", None)
        return schema

    def _inner(self, plain: Schema, place: str, within: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        kind = plain.get("type")
        if kind == "array":
            yield "items", self.item(plain.get("items", {}), f"{place}[]", within=within)
        if kind != "object":
            return
        others = plain.get("additionalProperties", True)
        if "properties" in plain:
            if others not in (True, False):
                raise NotStructuralError(
                    f"{place}: has fields of its own and others besides, which a structural schema cannot say"
                )
            fields = plain["properties"].items()
            yield (
                "properties",
                {name: self.schema(field, f"{place}.{name}", within=within) for name, field in fields},
            )
        elif isinstance(others, dict):
            yield "additionalProperties", self.item(others, f"{place}.*", within=within)
        else:
            yield "x-kubernetes-preserve-unknown-fields", True

    def _plain(self, given: Schema, place: str, within: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Follow references and take the one alternative that is not null; what stands beside them wins."""
        if "$ref" in given:
            name = given["$ref"].rpartition("/")[2]
            if name in within:
                raise NotStructuralError(
                    f"{place}: {name} holds itself, which a structural schema cannot say"
                )
            beside = {key: value for key, value in given.items() if key != "$ref"}
            return self._plain({**self.definitions[name], **beside}, place, (*within, name))
        if "anyOf" not in given:
            return given, within
        beside = {key: value for key, value in given.items() if key not in ("anyOf", "default")}
        chosen = [each for each in given["anyOf"] if each.get("type") != "null"]
        if len(chosen) == 1:
            return self._plain({**chosen[0], **beside}, place, within)
        if sorted(str(each.get("type")) for each in chosen) == ["integer", "string"]:
            return {"x-kubernetes-int-or-string": True, **beside}, within
        raise NotStructuralError(f"{place}: has alternatives, which a structural schema cannot say")

    @staticmethod
    def _described(plain: Schema, result: Schema) -> Schema:
        text = _line(plain.get("description", ""))
        if (default := _words(plain.get("default"))) and text:
            text = f"{text.rstrip('.')}. Default: {default}."
        return ({"description": text} if text else {}) | result


def _words(default: Any) -> str:
    if default is None or isinstance(default, list | dict):
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)
