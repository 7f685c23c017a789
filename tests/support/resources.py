"""Builders of resources: each is complete and right, and a test says only what it is about."""

from typing import Any

from hexflow_api import API_VERSION, GPUPool, Resources, Secret, TextToSQLWorkflow

MODEL = "Qwen/Qwen2.5-Coder-32B-Instruct"


def pool_data(name: str = "a100", /, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a pool as its YAML has it; ``spec`` is in camelCase, and None takes a field out."""
    fields = {"gpuType": "A100-80GB", "model": {"name": MODEL}, "tensorParallelSize": 2} | spec
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUPool",
        "metadata": {"name": name} | ({"labels": labels} if labels else {}),
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def workflow_data(name: str = "shop-questions", /, **spec: Any) -> dict[str, Any]:
    """Return a workflow as its YAML has it; ``spec`` is in camelCase, and None takes a field out."""
    database = {"name": "shop", "dialect": "sqlite", "dsnSecretRef": {"name": "shop", "key": "dsn"}}
    fields = {"databases": [database]} | spec
    return {
        "apiVersion": API_VERSION,
        "kind": "TextToSQLWorkflow",
        "metadata": {"name": name},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def a_pool(name: str = "a100", /, **spec: Any) -> GPUPool:
    """Return an A100 pool of the 32B model, changed by ``spec`` (camelCase)."""
    return GPUPool.model_validate(pool_data(name, **spec))


def a_workflow(name: str = "shop-questions", /, **spec: Any) -> TextToSQLWorkflow:
    """Return a workflow over the sample shop, changed by ``spec`` (camelCase)."""
    return TextToSQLWorkflow.model_validate(workflow_data(name, **spec))


def a_secret(name: str = "shop", /, *, namespace: str = "default", **data: str) -> Secret:
    """Return a Secret; without data it is the shop's address."""
    return Secret(name=name, namespace=namespace, data=data or {"dsn": "sqlite:///shop.sqlite"})


def resources_of(*objects: GPUPool | TextToSQLWorkflow | Secret) -> Resources:
    """Return the set of ``objects``, unchecked."""
    return Resources(
        pools=tuple(each for each in objects if isinstance(each, GPUPool)),
        workflows=tuple(each for each in objects if isinstance(each, TextToSQLWorkflow)),
        secrets=tuple(each for each in objects if isinstance(each, Secret)),
    )
