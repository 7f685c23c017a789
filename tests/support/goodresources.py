"""Objects that are right, each of another shape; every field of both resources is in one of them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from support.badresources import CANDIDATES, FIX, INLINE, LINK, SELECTOR, SHOP, TENANT
from support.resources import pool_data, workflow_data

ROOT = Path(__file__).parents[2]
KINDS = ("GPUPool", "TextToSQLWorkflow")

NATIVE = {
    "requests": {"cpu": "4", "memory": "16Gi"},
    "limits": {"memory": "32Gi"},
}
PLACEMENT = {
    "nodeSelector": {"gpu": "a100", "zone": ""},
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    },
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "runtimeClassName": "nvidia",
    "priorityClassName": "high",
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "schedulerName": "volcano",
}
EXPRESSIONS = {
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["gold", "tin"]},
        {"key": "old", "operator": "DoesNotExist"},
    ]
}
EVERYTHING_OF_A_POOL: dict[str, Any] = {
    "model": {
        "name": "Qwen/Qwen2.5-Coder-32B-Instruct",
        "source": "pvc://models/qwen",
        "hfTokenSecretRef": {"name": "hf", "key": "token"},
    },
    "replicas": 2,
    "gpu": {"count": 2, "resourceName": "nvidia.com/gpu"},
    "tensorParallelSize": 2,
    "maxModelLen": 32768,
    "maxNumSeqs": 128,
    "prefixCaching": False,
    "priorityScheduling": False,
    "engine": {
        "image": "vllm/vllm-openai:v0.11.0",
        "args": ["--enforce-eager", ""],
        "env": [
            {"name": "A", "value": "b"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "envFrom": [{"secretRef": {"name": "s", "optional": True}}],
        "port": 8001,
    },
    "placement": PLACEMENT,
    "cache": {"pvc": {"claimName": "models", "subPath": "qwen"}},
    "sharedMemory": "8Gi",
    "resources": NATIVE,
    "profile": {"inline": INLINE | {"slots": 64}},
    "suspend": False,
    "podTemplate": {"spec": {"hostIPC": True, "containers": [{"name": "engine", "tty": True}]}},
}
EVERYTHING_OF_A_WORKFLOW: dict[str, Any] = {
    "pools": {"names": ["a100", "l40s"]},
    "databases": [
        SHOP
        | {
            "include": ["orders", "Ünïcode table"],
            "exclude": ["payroll"],
            "sampleValues": 0,
            "refreshSeconds": 60,
        },
        SHOP | {"name": "stock"},
    ],
    "slo": {
        "deadlineSeconds": 60,
        "onDeadline": "Abort",
        "classes": [{"name": "gold", "deadlineSeconds": 20}],
        "objective": "Attainment",
    },
    "tenants": [
        TENANT | {"sloClass": "gold", "queriesPerMinute": 600, "maxInFlight": 50, "weight": 3},
        {"name": "everybody"},
    ],
    "stages": [
        LINK | {"model": "m", "maxTokens": 512, "onTimeout": "Continue"},
        CANDIDATES
        | {
            "after": ["link"],
            "fanOut": 4,
            "samples": 2,
            "sampling": {"temperature": 0.8, "topP": 0.95, "topK": 40, "seed": 0},
            "pools": ["a100"],
        },
        FIX | {"after": ["candidates"], "maxRounds": 5, "onTimeout": "Fail"},
        {"name": "choose", "kind": "Evaluation", "after": ["candidates", "fix"]},
    ],
    "scheduling": {
        "policy": "HexGenFlow+Urgency",
        "admission": "InTime",
        "dropLateCandidates": True,
        "alpha": {"seed": 0.5, "min": 0.0, "max": 1.0},
        "beta": {"value": 0.3},
        "fairness": {"value": 0.5},
    },
    "tuning": {
        "mode": "Auto",
        "schedule": "*/5 * * * *",
        "windowSeconds": 3600,
        "minQueries": 100,
        "minImprovement": 0.05,
        "maxStep": 0.1,
    },
    "router": {"image": "hexflow:1", "resources": NATIVE, "placement": PLACEMENT, "serviceMonitor": True},
}


def _longest(index: int) -> str:
    """Return a name as long as it may be, which differs from others at its end only: the costliest to compare."""
    return f"{'x' * 60}{index:03d}"


def _longest_pipeline() -> list[dict[str, Any]]:
    """Return 32 stages with names of 63 characters, each after all before it."""
    names = [_longest(index) for index in range(32)]
    return [
        {"name": name, "kind": "CandidateGeneration", **({"after": names[:index]} if index else {})}
        for index, name in enumerate(names)
    ]


GOOD: dict[str, dict[str, Any]] = {
    "the least of a pool": pool_data(tensorParallelSize=None),
    "everything of a pool": pool_data(**EVERYTHING_OF_A_POOL),
    "the longest name": pool_data("a" * 40),
    "no instance": pool_data(replicas=0),
    "the most instances": pool_data(replicas=1000),
    "a pool that is suspended": pool_data(suspend=True),
    "emulated instances": pool_data(emulated=True, replicas=3),
    "switched from emulated by one line": pool_data(emulated=False, endpoints=[{"url": "http://h:1"}]),
    "pods by label": pool_data(selector=SELECTOR),
    "pods by expression": pool_data(selector=EXPRESSIONS),
    "servers elsewhere": pool_data(
        endpoints=[
            {"url": "http://10.0.0.7:8000"},
            {"url": "http://[::1]:8000/v1"},
            {"url": "HTTPS://llm.example.com/team/v1/", "apiKeySecretRef": {"name": "llm", "key": "key"}},
            {"url": "https://llm.example.com", "caSecretRef": {"name": "llm", "key": "ca.crt"}},
        ]
    ),
    "as many servers as there may be": pool_data(
        endpoints=[{"url": f"http://{'a' * 490}.{index}:8000"} for index in range(64)]
    ),
    "a cache in a folder of the pod": pool_data(cache={"emptyDir": {}}),
    "a cache in a folder of the pod with a limit": pool_data(
        cache={"emptyDir": {"sizeLimit": "100Gi", "medium": "Memory"}}
    ),
    "a cache on the node": pool_data(cache={"hostPath": {"path": "/var/models"}}),
    "a built-in profile": pool_data(profile={"builtin": "a100-80gb-qwen2.5-32b-tp2"}),
    "a profile in a ConfigMap": pool_data(profile={"configMapRef": {"name": "p", "key": "profile.yaml"}}),
    "fewer parts than GPUs": pool_data(tensorParallelSize=2, gpu={"count": 4}),
    "parts and a count that is not said": pool_data(
        tensorParallelSize=4, gpu={"resourceName": "amd.com/gpu"}
    ),
    "labels and annotations": pool_data(labels={"team": "data"})
    | {"metadata": {"name": "labelled", "labels": {"team": "data"}, "annotations": {"a/b": "c" * 1000}}},
    "the least of a workflow": workflow_data(),
    "everything of a workflow": workflow_data(**EVERYTHING_OF_A_WORKFLOW),
    "pools by label": workflow_data(pools={"selector": SELECTOR}),
    "pools by label expressions": workflow_data(pools={"selector": EXPRESSIONS}),
    "every pool": workflow_data(pools={"selector": {}}),
    "one tenant without a key": workflow_data(tenants=[{"name": "everybody"}]),
    "as many tenants as there may be": workflow_data(
        slo={"classes": [{"name": _longest(index), "deadlineSeconds": 5} for index in range(16)]},
        tenants=[
            TENANT | {"name": _longest(index), "sloClass": _longest(index % 16)} for index in range(256)
        ],
    ),
    "as many databases as there may be": workflow_data(
        databases=[SHOP | {"name": _longest(index)} for index in range(64)]
    ),
    "as many pools as may be named": workflow_data(
        pools={"names": [_longest(index) for index in range(64)]},
        stages=[
            {
                "name": _longest(stage),
                "kind": "CandidateGeneration",
                "pools": [_longest(index) for index in range(64)],
            }
            for stage in range(32)
        ],
    ),
    "the longest pipeline": workflow_data(stages=_longest_pipeline()),
    "the stages of the paper": workflow_data(stages=[]),
    "a pair of rules as policy": workflow_data(scheduling={"policy": "RoundRobin+FCFS"}),
    "bounds that are one value": workflow_data(scheduling={"alpha": {"seed": 0, "min": 0, "max": 0}}),
    "a whole number as a parameter": workflow_data(scheduling={"alpha": {"value": 1}}),
    "the exponent of LeastHarm": workflow_data(
        scheduling={"policy": "LeastHarm", "exponent": {"seed": 3, "min": 1.5, "max": 5}}
    ),
    "fairness beside an exponent that is tuned": workflow_data(
        scheduling={"exponent": {"seed": 3, "min": 1, "max": 8}, "fairness": {"value": 1}}
    ),
    "no fairness": workflow_data(scheduling={"policy": "LeastHarm", "fairness": {"value": 0.0}}),
    "all the fairness there is": workflow_data(
        scheduling={"policy": "LeastHarm+VTC", "fairness": {"value": 2}}
    ),
    "fairness that the policy does not know": workflow_data(
        scheduling={"policy": "RoundRobin", "fairness": {"value": 50}}
    ),
    "fewer candidates rather than late": workflow_data(scheduling={"admission": "Degrade"}),
    "everybody let in": workflow_data(scheduling={"admission": "Always"}),
    "parameters that are pinned": workflow_data(
        scheduling={"policy": "LeastHarm+LatestStart", "exponent": {"value": 3}}
    ),
    "everything open to tuning": workflow_data(
        scheduling={"policy": "HexGenFlow", "beta": {"seed": 0.3, "min": 0.1, "max": 10}}
    ),
    "a parameter that the policy does not take": workflow_data(
        scheduling={"policy": "RoundRobin", "beta": {"value": 5000}}
    ),
    "a word of cron": workflow_data(tuning={"mode": "Recommend", "schedule": "@hourly"}),
    "the longest deadline": workflow_data(slo={"deadlineSeconds": 86_400}),
}
"""What each is about -> the object."""


def examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each of our objects in examples/ and in the code of the documentation, with where it stands."""
    for file in sorted((ROOT / "examples").rglob("*.yaml*")):
        yield from _ours(file, file.read_text(encoding="utf-8"))
    for page in sorted([ROOT / "README.md", *ROOT.glob("*/README.md"), *(ROOT / "docs").rglob("*.md")]):
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^( *)```yaml\n(.*?)^\1```", text, flags=re.DOTALL | re.MULTILINE):
            indent, code = block
            yield from _ours(page, re.sub(f"^{indent}", "", code, flags=re.MULTILINE))


def _ours(file: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for document in yaml.safe_load_all(text):
        if isinstance(document, dict) and document.get("kind") in KINDS:
            where = f"{file.relative_to(ROOT)}: {document['kind']} {document['metadata']['name']}"
            yield where, document
