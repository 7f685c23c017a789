"""The rules of a TextToSQLWorkflow."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from hexflow_api.policy import DEFAULT_POLICY, PARAMETERS, PINNED, POLICIES
from hexflow_api.rule import Rule, exactly_one, names, seen_before, selectors, set_fields, unless

TUNABLE: Final = ("alpha", "beta", "exponent")
"""Parameters of policies that a resource may pin or leave open to tuning."""


def _repeated(items: Iterable[Any]) -> Iterator[str]:
    yield from (f"[{index}].name" for index in seen_before(item.name for item in items))


def _unique_names(path: str, what: str) -> Rule:
    return Rule(
        kind="TextToSQLWorkflow",
        path=path,
        cel="self.all(a, self.exists_one(b, b.name == a.name))",
        message=f"each of the {what} needs a name of its own; rename one",
        faults=_repeated,
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
    yield from (field for field in set_fields(stage, *owners) if owners[field] != stage.kind)


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
    given = set(set_fields(parameter, "value", "seed", "min", "max"))
    yield from unless(given in ({"value"}, {"seed", "min", "max"}))


def _ordered_bounds(parameter: Any) -> Iterator[str]:
    if None in (parameter.seed, parameter.min, parameter.max):
        return
    yield from unless(parameter.min <= parameter.seed <= parameter.max)


def _policy_bounds(dispatch: str, name: str) -> Rule:
    """Bound a parameter under the one dispatch rule that takes it so; under others it has no effect."""
    low, high = PARAMETERS[dispatch][name]
    named = f"self.policy == '{dispatch}' || self.policy.startsWith('{dispatch}+')"
    in_force = f"(has(self.policy) ? ({named}) : {str(dispatch == POLICIES[DEFAULT_POLICY][0]).lower()})"
    fields = ("value",) if name in PINNED else ("value", "seed", "min", "max")
    bounds = " && ".join(
        f"(!has(self.{name}.{field}) || (self.{name}.{field} >= {low} && self.{name}.{field} <= {high}))"
        for field in fields
    )

    def faults(scheduling: Any) -> Iterator[str]:
        parameter = getattr(scheduling, name)
        if parameter is None or scheduling.rules[0] != dispatch:
            return
        for field in fields:
            given = getattr(parameter, field)
            if given is not None and not low <= given <= high:
                yield f"{name}.{field}"

    return Rule(
        kind="TextToSQLWorkflow",
        path="spec.scheduling",
        field=name,
        cel=f"!has(self.{name}) || !{in_force} || ({bounds})",
        message=f"{name} of {dispatch} lies between {low:g} and {high:g}; choose a value there",
        faults=faults,
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


WORKFLOW_RULES: Final[tuple[Rule, ...]] = (
    *names("TextToSQLWorkflow"),
    exactly_one(
        "TextToSQLWorkflow",
        "spec.pools",
        "names",
        "selector",
        remedy="or leave pools out to use every pool of the namespace",
    ),
    selectors("TextToSQLWorkflow", "spec.pools.selector"),
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
        faults=lambda stages: unless(
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
    *(rule for name in TUNABLE for rule in _parameter(name)),
    *(
        _policy_bounds(dispatch, name)
        for dispatch, parameters in PARAMETERS.items()
        for name in (*TUNABLE, *PINNED)
        if name in parameters
    ),
)
"""What must hold of a TextToSQLWorkflow."""
