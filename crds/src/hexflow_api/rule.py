"""The rules between fields that a schema cannot say, each written once.

A rule is CEL (for the API server), a message with its remedy, and the same test in Python, so that
`hexflow validate` speaks the API server's words. Rules between *objects* (a workflow and its pools) are
in ``reference.py``: the API server cannot know them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from hexflow_api.policy import PARAMETERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """State what must hold at one place of a resource."""

    kind: str
    """The resource kind it belongs to."""
    path: str
    """The place in camelCase, such as ``spec.stages``; empty for the whole resource, ``[*]`` for each item."""
    cel: str
    """The test for the API server, where ``self`` is the value at ``path``."""
    message: str
    """What must hold and what to write instead."""
    faults: Callable[[Any], Iterable[str]]
    """The test in Python: given the value at ``path``, yield the place below it of each offender (empty: the value itself)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Say which rule an object breaks and where."""

    rule: Rule
    path: str
    """The offending place in camelCase, from the root of the resource."""

    def __str__(self) -> str:
        return f"{self.path}: {self.rule.message}"


def violations(resource: BaseModel) -> list[Violation]:
    """Return what ``resource`` breaks of the rules of its kind, in the table's order."""
    found = []
    for rule in RULES:
        if rule.kind != type(resource).__name__:
            continue
        for place, value in _places(resource, rule.path):
            found += [Violation(rule=rule, path=_joined(place, fault)) for fault in rule.faults(value)]
    return found


def refuse_violations(resource: BaseModel) -> None:
    """Raise the validation error of every rule that ``resource`` breaks."""
    if found := violations(resource):
        raise PydanticCustomError(
            "rule",
            "{text}",
            {
                "text": "; ".join(map(str, found)),
                "violations": [(each.path, each.rule.message) for each in found],
            },
        )


def _joined(place: str, fault: str) -> str:
    return place + fault if not place or not fault or fault.startswith("[") else f"{place}.{fault}"


def _places(value: Any, path: str, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value that ``path`` names, with its place; what is absent is passed over."""
    if value is None:
        return
    if not path:
        yield place, value
        return
    step, _, rest = path.partition(".")
    name = step.removesuffix("[*]")
    below = getattr(value, _python_name(value, name))
    where = f"{place}.{name}" if place else name
    if not step.endswith("[*]"):
        yield from _places(below, rest, where)
        return
    for index, item in enumerate(below or ()):
        yield from _places(item, rest, f"{where}[{index}]")


def _python_name(value: BaseModel, alias: str) -> str:
    return next(name for name, field in type(value).model_fields.items() if alias in (field.alias, name))


def _set_fields(value: BaseModel, *aliases: str) -> list[str]:
    values = {alias: getattr(value, _python_name(value, alias)) for alias in aliases}
    return [alias for alias, given in values.items() if given is not None and given is not False]


def _unless(holds: bool, place: str = "") -> tuple[str, ...]:
    return () if holds else (place,)


def _repeated(items: Iterable[Any], *, key: str = "name") -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items):
        value = getattr(item, key)
        if value in seen:
            yield f"[{index}].{key}"
        seen.add(value)


def _unique_names(path: str, what: str) -> Rule:
    return Rule(
        kind="TextToSQLWorkflow",
        path=path,
        cel="self.all(a, self.exists_one(b, b.name == a.name))",
        message=f"each of the {what} needs a name of its own; rename one",
        faults=_repeated,
    )


def _exactly_one(kind: str, path: str, *fields: str, remedy: str) -> Rule:
    return Rule(
        kind=kind,
        path=path,
        cel=f"[{', '.join(f'has(self.{field})' for field in fields)}].exists_one(given, given)",
        message=f"give exactly one of {', '.join(fields)}; {remedy}",
        faults=lambda value: _unless(len(_set_fields(value, *fields)) == 1),
    )


def _names(kind: str) -> Rule:
    return Rule(
        kind=kind,
        path="metadata",
        cel="!self.name.startsWith('hexflow-')",
        message="a name must not begin with 'hexflow-', which HexFlow keeps for what it makes; choose another",
        faults=lambda metadata: _unless(not metadata.name.startswith("hexflow-"), "name"),
    )


def _later_stages(stages: Any) -> Iterator[str]:
    earlier: set[str] = set()
    for index, stage in enumerate(stages):
        yield from (
            f"[{index}].after[{position}]" for position, name in enumerate(stage.after) if name not in earlier
        )
        earlier.add(stage.name)


def _stages_before_candidates(stages: Any) -> Iterator[str]:
    candidates = False
    for index, stage in enumerate(stages):
        candidates = candidates or stage.kind == "CandidateGeneration"
        if stage.kind in ("SelfCorrection", "Evaluation") and not candidates:
            yield f"[{index}].kind"


def _fields_of_other_kinds(stage: Any) -> Iterator[str]:
    owners = {
        "fanOut": "CandidateGeneration",
        "samples": "CandidateGeneration",
        "maxRounds": "SelfCorrection",
    }
    yield from (field for field in _set_fields(stage, *owners) if owners[field] != stage.kind)


def _unknown_classes(spec: Any) -> Iterator[str]:
    classes = {slo_class.name for slo_class in spec.slo.classes}
    for index, tenant in enumerate(spec.tenants):
        if tenant.slo_class is not None and tenant.slo_class not in classes:
            yield f"tenants[{index}].sloClass"


def _foreign_pools(spec: Any) -> Iterator[str]:
    names = spec.pools.names if spec.pools else None
    for index, stage in enumerate(spec.stages):
        for position, name in enumerate(stage.pools or ()):
            if names is not None and name not in names:
                yield f"stages[{index}].pools[{position}]"


def _keyless_tenants(tenants: Any) -> Iterator[str]:
    keyless = [f"[{index}]" for index, tenant in enumerate(tenants) if tenant.api_key_secret_ref is None]
    yield from keyless[1:]


def _pinned_or_open(parameter: Any) -> Iterator[str]:
    given = set(_set_fields(parameter, "value", "seed", "min", "max"))
    yield from _unless(given in ({"value"}, {"seed", "min", "max"}))


def _ordered_bounds(parameter: Any) -> Iterator[str]:
    if None in (parameter.seed, parameter.min, parameter.max):
        return
    yield from _unless(parameter.min <= parameter.seed <= parameter.max)


def _outside(low: float, high: float) -> Callable[[Any], Iterator[str]]:
    def faults(parameter: Any) -> Iterator[str]:
        for name in ("value", "seed", "min", "max"):
            given = getattr(parameter, name)
            if given is not None and not low <= given <= high:
                yield name

    return faults


def _bounds(name: str) -> Rule:
    low, high = PARAMETERS["HexGenFlow"][name]
    return Rule(
        kind="TextToSQLWorkflow",
        path=f"spec.scheduling.{name}",
        cel=" && ".join(
            f"(!has(self.{field}) || (self.{field} >= {low} && self.{field} <= {high}))"
            for field in ("value", "seed", "min", "max")
        ),
        message=f"{name} lies between {low:g} and {high:g}; choose a value there",
        faults=_outside(low, high),
    )


def _parameter(name: str) -> tuple[Rule, Rule]:
    path = f"spec.scheduling.{name}"
    return (
        Rule(
            kind="TextToSQLWorkflow",
            path=path,
            cel="has(self.value) ? !has(self.seed) && !has(self.min) && !has(self.max)"
            " : has(self.seed) && has(self.min) && has(self.max)",
            message="give either value (pinned) or seed, min and max (open to tuning)",
            faults=_pinned_or_open,
        ),
        Rule(
            kind="TextToSQLWorkflow",
            path=path,
            cel="!(has(self.seed) && has(self.min) && has(self.max)) || (self.min <= self.seed && self.seed <= self.max)",
            message="min must not exceed seed, nor seed exceed max; put them in order",
            faults=_ordered_bounds,
        ),
    )


RULES: Final[tuple[Rule, ...]] = (
    _names("GPUPool"),
    Rule(
        kind="GPUPool",
        path="spec",
        cel="[has(self.selector), has(self.endpoints), has(self.emulated) && self.emulated].filter(given, given).size() <= 1",
        message="a pool has one source of instances: keep one of selector, endpoints and emulated,"
        " or none to have pods made",
        faults=lambda spec: _unless(len(_set_fields(spec, "selector", "endpoints", "emulated")) <= 1),
    ),
    Rule(
        kind="GPUPool",
        path="spec",
        cel="!has(self.tensorParallelSize) || !has(self.gpu) || !has(self.gpu.count) || self.tensorParallelSize <= self.gpu.count",
        message="tensorParallelSize must not exceed gpu.count; raise gpu.count or leave one of the two out",
        faults=lambda spec: _unless(
            spec.gpu is None
            or spec.tensor_parallel_size is None
            or "count" not in spec.gpu.model_fields_set
            or spec.tensor_parallel_size <= spec.gpu.count,
            "tensorParallelSize",
        ),
    ),
    Rule(
        kind="GPUPool",
        path="spec",
        # the API server sees each url as it is written; here a trailing slash or /v1 makes no difference
        cel="!has(self.endpoints) || self.endpoints.all(a, self.endpoints.exists_one(b, b.url == a.url))",
        message="each url may be listed once; take the second one out",
        faults=lambda spec: (f"endpoints{place}" for place in _repeated(spec.endpoints or (), key="url")),
    ),
    _exactly_one(
        "GPUPool",
        "spec.profile",
        "inline",
        "configMapRef",
        "builtin",
        remedy="or leave profile out to have the built-in one of gpuType and model",
    ),
    _exactly_one("GPUPool", "spec.cache", "emptyDir", "pvc", "hostPath", remedy="or leave cache out"),
    _names("TextToSQLWorkflow"),
    _exactly_one(
        "TextToSQLWorkflow",
        "spec.pools",
        "names",
        "selector",
        remedy="or leave pools out to use every pool of the namespace",
    ),
    _unique_names("spec.databases", "databases"),
    _unique_names("spec.slo.classes", "classes"),
    _unique_names("spec.tenants", "tenants"),
    _unique_names("spec.stages", "stages"),
    Rule(
        kind="TextToSQLWorkflow",
        path="spec",
        cel="!has(self.tenants) || self.tenants.all(t, !has(t.sloClass) || (has(self.slo) && has(self.slo.classes)"
        " && self.slo.classes.exists(c, c.name == t.sloClass)))",
        message="sloClass must be one of slo.classes; add the class there or correct the name",
        faults=_unknown_classes,
    ),
    Rule(
        kind="TextToSQLWorkflow",
        path="spec.tenants",
        cel="self.filter(t, !has(t.apiKeySecretRef)).size() <= 1",
        message="only one tenant may go without apiKeySecretRef, for requests without a key are that tenant's;"
        " give the others a key",
        faults=_keyless_tenants,
    ),
    Rule(
        kind="TextToSQLWorkflow",
        path="spec.stages",
        cel="self.all(i, s, !has(s.after) || s.after.all(name, self.exists(j, earlier, j < i && earlier.name == name)))",
        message="after must name stages that are listed earlier; move this stage down or correct the name",
        faults=_later_stages,
    ),
    Rule(
        kind="TextToSQLWorkflow",
        path="spec.stages",
        cel="self.size() == 0 || self.exists(s, s.kind == 'CandidateGeneration')",
        message="a pipeline needs a stage of kind CandidateGeneration, for no other writes SQL;"
        " add one, or leave stages out to have the paper's four",
        faults=lambda stages: _unless(
            not stages or any(stage.kind == "CandidateGeneration" for stage in stages)
        ),
    ),
    Rule(
        kind="TextToSQLWorkflow",
        path="spec.stages",
        cel="self.all(i, s, !(s.kind in ['SelfCorrection', 'Evaluation'])"
        " || self.exists(j, earlier, j < i && earlier.kind == 'CandidateGeneration'))",
        message="SelfCorrection and Evaluation work on candidates; list a CandidateGeneration stage before them",
        faults=_stages_before_candidates,
    ),
    Rule(
        kind="TextToSQLWorkflow",
        path="spec.stages[*]",
        cel="(self.kind == 'CandidateGeneration' || (!has(self.fanOut) && !has(self.samples)))"
        " && (self.kind == 'SelfCorrection' || !has(self.maxRounds))",
        message="fanOut and samples belong to CandidateGeneration, maxRounds to SelfCorrection; take it out here",
        faults=_fields_of_other_kinds,
    ),
    Rule(
        kind="TextToSQLWorkflow",
        path="spec",
        cel="!has(self.stages) || !has(self.pools) || !has(self.pools.names)"
        " || self.stages.all(s, !has(s.pools) || s.pools.all(p, p in self.pools.names))",
        message="a stage may only narrow the workflow's pools; add the pool to spec.pools.names or take it out here",
        faults=_foreign_pools,
    ),
    *_parameter("alpha"),
    _bounds("alpha"),
    *_parameter("beta"),
    _bounds("beta"),
)
"""Every rule, by kind and place."""
