"""Objects that each break one rule: refused by the models, by `hexflow validate` and by a real API server alike."""

import copy
import re
from dataclasses import dataclass
from typing import Any

from hexflow_api import RULES, Rule
from support.resources import pool_data, workflow_data

LINK = {"name": "link", "kind": "SchemaLinking"}
CANDIDATES = {"name": "candidates", "kind": "CandidateGeneration"}
FIX = {"name": "fix", "kind": "SelfCorrection"}
SHOP = {"name": "shop", "dialect": "sqlite", "dsnSecretRef": {"name": "shop", "key": "dsn"}}
SELECTOR = {"matchLabels": {"app": "vllm"}}
INLINE = {"t0": 0.02, "t1": 0, "t2": 0, "c1": 0.0001, "c2": 0, "kvTokens": 50_000}
TENANT = {"name": "a", "apiKeySecretRef": {"name": "k", "key": "a"}}


@dataclass(frozen=True, slots=True)
class Bad:
    """An object that breaks one rule."""

    data: dict[str, Any]
    path: str
    """The place that we name."""
    words: str
    """A piece of what we say there."""

    @property
    def rule(self) -> Rule | None:
        """The rule of our tables that it breaks; None where the schema itself refuses it."""
        found = [
            rule
            for rule in RULES
            if rule.kind == self.data["kind"] and _fits(rule, self.path) and self.words in rule.message
        ]
        return found[0] if found else None

    @property
    def served_path(self) -> str:
        """The place that the API server names: where the rule stands, or the field itself."""
        if self.rule is None:
            return self.path
        return re.match(_pattern(self.rule.place), self.path)[0]  # type: ignore[index]

    def named(self, name: str) -> dict[str, Any]:
        """Return the object under another name, if it is not the name that is wrong."""
        if self.path.startswith("metadata"):
            return self.data
        data = copy.deepcopy(self.data)
        data["metadata"]["name"] = name
        return data


def _pattern(place: str) -> str:
    return re.escape(place).replace(re.escape("[*]"), r"\[\d+\]")


def _fits(rule: Rule, path: str) -> bool:
    return re.match(_pattern(rule.place), path) is not None


def _expression(**given: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "tier", **given}]}


RULES_BROKEN: tuple[Bad, ...] = (
    Bad(pool_data("hexflow-a"), "metadata.name", "must not begin with 'hexflow-'"),
    Bad(pool_data("a" * 41), "metadata.name", "at most 40 characters"),
    Bad(pool_data("a.b"), "metadata.name", "no dot"),
    Bad(pool_data(emulated=True, selector=SELECTOR), "spec", "keep one of selector, endpoints and emulated"),
    Bad(
        pool_data(emulated=True, endpoints=[{"url": "http://a:1"}]),
        "spec",
        "a pool has one source of instances",
    ),
    Bad(
        pool_data(selector=SELECTOR, endpoints=[{"url": "http://a:1"}]),
        "spec",
        "or none to have pods made",
    ),
    Bad(pool_data(tensorParallelSize=4, gpu={"count": 2}), "spec.tensorParallelSize", "raise gpu.count"),
    *(
        Bad(pool_data(endpoints=[{"url": "http://b:1"}, {"url": url}]), "spec.endpoints[1].url", words)
        for url, words in (
            ("a:8000", "such as http://10.0.0.7:8000"),
            ("ftp://a:8000", "must be the http:// or https:// address"),
            ("http://:8000", "must be the http:// or https:// address"),
            ("http://a:99999", "must be the http:// or https:// address"),
            ("http://a:0", "must be the http:// or https:// address"),
            ("http://a a/", "must be the http:// or https:// address"),
            ("http://[::1", "must be the http:// or https:// address"),
            ("http://ä:1", "must be the http:// or https:// address"),
            ("http://[::1]-8000", "must be the http:// or https:// address"),
            ("http://%61:1", "must be the http:// or https:// address"),
            ("http://a/%6", "must be the http:// or https:// address"),
            ("http://u:p@h", "put the key into a Secret"),
            ("http://h/?k=1", "give the server's root"),
            ("http://h/#top", "must not hold a query or fragment"),
            ("http://b:1", "take the second one out"),
            ("http://b:1/v1/", "take the second one out"),
        )
    ),
    Bad(pool_data(selector={}), "spec.selector", "selector must ask for some label"),
    Bad(
        pool_data(selector=_expression(operator="In")),
        "spec.selector.matchExpressions[0]",
        "In and NotIn need values",
    ),
    Bad(
        pool_data(selector=_expression(operator="Exists", values=["gold"])),
        "spec.selector.matchExpressions[0]",
        "Exists and DoesNotExist take none",
    ),
    Bad(
        pool_data(profile={"inline": INLINE, "builtin": "x"}),
        "spec.profile",
        "give exactly one of inline, configMapRef, builtin",
    ),
    Bad(pool_data(profile={}), "spec.profile", "or leave profile out"),
    Bad(pool_data(cache={}), "spec.cache", "give exactly one of emptyDir, pvc, hostPath"),
    Bad(
        pool_data(cache={"emptyDir": {}, "hostPath": {"path": "/models"}}),
        "spec.cache",
        "or leave cache out",
    ),
    Bad(workflow_data("hexflow-w"), "metadata.name", "must not begin with 'hexflow-'"),
    Bad(workflow_data("w" * 41), "metadata.name", "at most 40 characters"),
    Bad(workflow_data(pools={}), "spec.pools", "give exactly one of names, selector"),
    Bad(
        workflow_data(pools={"names": ["a"], "selector": SELECTOR}),
        "spec.pools",
        "or leave pools out to use every pool",
    ),
    Bad(
        workflow_data(pools={"selector": _expression(operator="NotIn")}),
        "spec.pools.selector.matchExpressions[0]",
        "In and NotIn need values",
    ),
    Bad(
        workflow_data(databases=[SHOP, SHOP]),
        "spec.databases[1].name",
        "each of the databases needs a name of its own",
    ),
    Bad(
        workflow_data(slo={"classes": [{"name": "gold", "deadlineSeconds": n} for n in (1, 2)]}),
        "spec.slo.classes[1].name",
        "each of the classes needs a name of its own",
    ),
    Bad(
        workflow_data(tenants=[TENANT, TENANT]),
        "spec.tenants[1].name",
        "each of the tenants needs a name of its own",
    ),
    Bad(
        workflow_data(stages=[CANDIDATES, CANDIDATES]),
        "spec.stages[1].name",
        "each of the stages needs a name of its own",
    ),
    Bad(
        workflow_data(tenants=[{"name": "a", "sloClass": "gold"}]),
        "spec.tenants[0].sloClass",
        "sloClass must be one of slo.classes",
    ),
    Bad(workflow_data(tenants=[{"name": "a"}, {"name": "b"}]), "spec.tenants[1]", "give the others a key"),
    Bad(
        workflow_data(stages=[LINK | {"after": ["candidates"]}, CANDIDATES]),
        "spec.stages[0].after[0]",
        "move this stage down",
    ),
    Bad(
        workflow_data(stages=[CANDIDATES | {"after": ["candidates"]}]),
        "spec.stages[0].after[0]",
        "after must name stages that are listed earlier",
    ),
    Bad(
        workflow_data(stages=[LINK, CANDIDATES | {"after": ["lnik"]}]),
        "spec.stages[1].after[0]",
        "move this stage down or correct the name",
    ),
    Bad(workflow_data(stages=[LINK]), "spec.stages", "a pipeline needs a stage of kind CandidateGeneration"),
    Bad(
        workflow_data(stages=[FIX, CANDIDATES]),
        "spec.stages[0].kind",
        "list a CandidateGeneration stage before",
    ),
    Bad(
        workflow_data(stages=[CANDIDATES | {"maxRounds": 2}]), "spec.stages[0].maxRounds", "take it out here"
    ),
    Bad(
        workflow_data(stages=[LINK | {"fanOut": 2}, CANDIDATES]), "spec.stages[0].fanOut", "take it out here"
    ),
    Bad(
        workflow_data(stages=[CANDIDATES, FIX | {"samples": 2}]), "spec.stages[1].samples", "take it out here"
    ),
    Bad(
        workflow_data(pools={"names": ["a"]}, stages=[CANDIDATES | {"pools": ["a", "b"]}]),
        "spec.stages[0].pools[1]",
        "a stage may only narrow the workflow's pools",
    ),
    *(
        Bad(
            workflow_data(scheduling={"policy": policy, name: values}),
            f"spec.scheduling.{name}{field}",
            words,
        )
        for policy, name, low, high in (
            ("HexGenFlow", "alpha", 0.2, 0.8),
            ("HexGenFlow+FCFS", "beta", 0.2, 0.8),
            ("LeastHarm", "exponent", 2, 4),
        )
        for values, field, words in (
            ({"value": low, "seed": low}, "", "give either value (pinned) or seed, min and max"),
            ({"seed": low, "min": low}, "", "give either value (pinned) or seed, min and max"),
            ({}, "", "give either value (pinned) or seed, min and max"),
            ({"seed": low, "min": high, "max": high}, "", "put them in order"),
            ({"seed": high, "min": low, "max": low}, "", "min must not exceed seed, nor seed exceed max"),
            ({"value": 2000}, ".value", f"{name} of {policy.partition('+')[0]} lies between"),
            ({"value": -1}, ".value", f"{name} of {policy.partition('+')[0]} lies between"),
        )
    ),
    Bad(
        workflow_data(scheduling={"policy": "HexGenFlowLiteral", "alpha": {"value": 2}}),
        "spec.scheduling.alpha.value",
        "alpha of HexGenFlowLiteral lies between 0 and 1",
    ),
    Bad(
        workflow_data(
            scheduling={"policy": "HexGenFlowLiteral+FCFS", "beta": {"seed": 1, "min": 0, "max": 2}}
        ),
        "spec.scheduling.beta.min",
        "beta of HexGenFlowLiteral lies between",
    ),
    *(
        Bad(
            workflow_data(scheduling={**policy, "fairness": {"value": value}}),
            "spec.scheduling.fairness.value",
            "fairness of LeastHarm lies between 0 and 2; choose a value there",
        )
        for policy, value in (({}, -0.5), ({"policy": "LeastHarm"}, 2.5), ({"policy": "LeastHarm+VTC"}, 3))
    ),
)
"""Objects that break a rule of ours."""


def _pool(path: str, words: str, **spec: Any) -> Bad:
    return Bad(pool_data(**spec), path, words)


def _workflow(path: str, words: str, **spec: Any) -> Bad:
    return Bad(workflow_data(**spec), path, words)


def _many(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": f"n{index}", **fields} for index in range(count)]


SCHEMA_BROKEN: tuple[Bad, ...] = (
    Bad(pool_data("A_100"), "metadata.name", "lower-case letters"),
    Bad(pool_data("l", labels={"a b": "c"}), "metadata.labels", "'a b' is no key"),
    Bad(pool_data("l", labels={"a": "b c"}), "metadata.labels", "annotations take any text"),
    _pool("spec.gpuType", "is missing", gpuType=None),
    _pool("spec.gpuType", "must not be empty", gpuType=""),
    _pool("spec.gpuType", "letters, digits", gpuType="A100 80GB"),
    _pool("spec.gpuType", "must be text", gpuType=100),
    _pool("spec.gpuType", "at most 63", gpuType="A" * 64),
    _pool("spec.model", "is missing", model=None),
    _pool("spec.model.name", "is missing", model={}),
    _pool("spec.model.name", "no blank", model={"name": "a b"}),
    _pool("spec.model.name", "no '@'", model={"name": "a@b"}),
    _pool("spec.model.source", "must begin with hf://", model={"name": "m", "source": "/models/m"}),
    _pool(
        "spec.model.hfTokenSecretRef.key",
        "is missing",
        model={"name": "m", "hfTokenSecretRef": {"name": "s"}},
    ),
    _pool("spec.replicas", "at least 0", replicas=-1),
    _pool("spec.replicas", "at most 1000", replicas=1001),
    _pool("spec.replicas", "a whole number", replicas="2"),
    _pool("spec.replicas", "a whole number", replicas=1.5),
    _pool("spec.gpu.count", "at least 1", gpu={"count": 0}),
    _pool("spec.tensorParallelSize", "at most 64", tensorParallelSize=65),
    _pool("spec.maxModelLen", "at least 256", maxModelLen=128),
    _pool("spec.emulated", "true or false", emulated="yes"),
    _pool("spec.engine.port", "at most 65535", engine={"port": 65536}),
    _pool("spec.engine.args", "a list", engine={"args": "--verbose"}),
    _pool("spec.engine.args", "at most 128 items", engine={"args": ["x"] * 129}),
    _pool("spec.engine.env[0]", "a group of fields", engine={"env": ["A=b"]}),
    _pool("spec.placement.runtimeClassName", "lower-case letters", placement={"runtimeClassName": "NVIDIA"}),
    _pool("spec.placement.nodeSelector.a", "must be text", placement={"nodeSelector": {"a": 1}}),
    _pool("spec.cache.hostPath.path", "an absolute path", cache={"hostPath": {"path": "models"}}),
    _pool("spec.sharedMemory", "a quantity", sharedMemory="8 GB"),
    _pool("spec.profile.inline.t0", "more than 0", profile={"inline": INLINE | {"t0": 0}}),
    _pool(
        "spec.profile.inline.kvTokens", "a whole number", profile={"inline": INLINE | {"kvTokens": 1e3 + 0.5}}
    ),
    _pool("spec.endpoints", "must not be empty", endpoints=[]),
    _pool("spec.endpoints[0].url", "is missing", endpoints=[{}]),
    _pool("spec.endpoints[0].url", "at most 512", endpoints=[{"url": "http://h/" + "a" * 512}]),
    _pool(
        "spec.selector.matchExpressions[0].operator",
        "one of In, NotIn",
        selector=_expression(operator="Like"),
    ),
    _workflow("spec.databases", "is missing", databases=None),
    _workflow("spec.databases", "must not be empty", databases=[]),
    _workflow(
        "spec.databases",
        "at most 64 items",
        databases=_many(65, dialect="sqlite", dsnSecretRef={"name": "s", "key": "k"}),
    ),
    _workflow("spec.databases[0].dialect", "must be sqlite", databases=[SHOP | {"dialect": "oracle"}]),
    _workflow("spec.databases[0].name", "lower-case letters", databases=[SHOP | {"name": "Shop"}]),
    _workflow("spec.databases[0].sampleValues", "at most 20", databases=[SHOP | {"sampleValues": 21}]),
    _workflow(
        "spec.databases[0].dsnSecretRef.key",
        "letters, digits",
        databases=[SHOP | {"dsnSecretRef": {"name": "s", "key": "a/b"}}],
    ),
    _workflow("spec.slo.deadlineSeconds", "at least 1", slo={"deadlineSeconds": 0}),
    _workflow("spec.slo.onDeadline", "one of Finish, Abort", slo={"onDeadline": "Stop"}),
    _workflow("spec.slo.objective", "one of P95", slo={"objective": "P99"}),
    _workflow(
        "spec.tenants", "at most 256 items", tenants=_many(257, apiKeySecretRef={"name": "s", "key": "k"})
    ),
    _workflow("spec.tenants[0].weight", "at least 1", tenants=[TENANT | {"weight": 0}]),
    _workflow("spec.stages", "at most 32 items", stages=_many(33, kind="CandidateGeneration")),
    _workflow("spec.stages[0].kind", "one of SchemaLinking", stages=[{"name": "a", "kind": "Guessing"}]),
    _workflow("spec.stages[0].name", "at most 63", stages=[CANDIDATES | {"name": "a" * 64}]),
    _workflow("spec.stages[0].fanOut", "at most 64", stages=[CANDIDATES | {"fanOut": 65}]),
    _workflow(
        "spec.stages[0].sampling.temperature",
        "at most 2",
        stages=[CANDIDATES | {"sampling": {"temperature": 2.5}}],
    ),
    _workflow("spec.stages[0].sampling.topP", "more than 0", stages=[CANDIDATES | {"sampling": {"topP": 0}}]),
    _workflow("spec.stages[0].onTimeout", "one of Skip", stages=[CANDIDATES | {"onTimeout": "Wait"}]),
    _workflow("spec.pools.names", "must not be empty", pools={"names": []}),
    _workflow("spec.scheduling.admission", "one of Always, InTime", scheduling={"admission": "Refuse"}),
    _workflow("spec.scheduling.policy", "LeastOutstanding", scheduling={"policy": "Fastest"}),
    _workflow("spec.scheduling.fairness", "a group of fields (value)", scheduling={"fairness": 1}),
    _workflow("spec.scheduling.fairness.value", "is missing", scheduling={"fairness": {}}),
    _workflow("spec.scheduling.fairness.value", "a number", scheduling={"fairness": {"value": "1"}}),
    _workflow("spec.tuning.mode", "one of Off", tuning={"mode": "On"}),
    _workflow("spec.tuning.schedule", "must be five fields", tuning={"schedule": "every 5 minutes"}),
    _workflow("spec.tuning.windowSeconds", "at least 60", tuning={"windowSeconds": 5}),
    _workflow("spec.tuning.minImprovement", "at most 1", tuning={"minImprovement": 1.5}),
    _workflow("spec.router.image", "must not be empty", router={"image": ""}),
)
"""Objects that the schema itself refuses, each by one bound or type."""

UNKNOWN_FIELDS: tuple[Bad, ...] = (
    _pool("spec.gpuTyp", "did you mean 'gpuType'", gpuTyp="L40S"),
    _pool("spec.model.nam", "did you mean 'name'", model={"name": "m", "nam": "m"}),
    _pool("spec.placement.zone", "there is no such field", placement={"zone": "a"}),
    _workflow("spec.deadlineSeconds", "it belongs at spec.slo.deadlineSeconds", deadlineSeconds=5),
    _workflow(
        "spec.scheduling.fairness.max",
        "there is no such field; the fields here are value",
        scheduling={"fairness": {"value": 1, "max": 2}},
    ),
    _workflow("spec.stages[0].fan_out", "did you mean 'fanOut'", stages=[CANDIDATES | {"fan_out": 2}]),
)
"""Objects with a field that there is not: apply refuses them, other writes take the field out."""

BAD = (*RULES_BROKEN, *SCHEMA_BROKEN)
