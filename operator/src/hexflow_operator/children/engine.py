"""The Deployment of a pool: pods with one inference server each, real or emulated."""

from typing import Any, Final

from hexflow_api import GPUPool, Profile
from hexflow_operator.children.command import (
    DRAIN_SECONDS,
    WEIGHTS_PATH,
    emulator_arguments,
    engine_arguments,
    weights_of,
)
from hexflow_operator.children.metadata import child_of, engine_name, labels, selector
from hexflow_operator.children.pod import (
    OUT_OF_ROTATION_SECONDS,
    container_security,
    http_probe,
    placed,
    pod_security,
    prestop,
    variables,
)
from hexflow_operator.children.podtemplate import merged
from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import GPU_TYPE_LABEL, Manifest

ENGINE_PORT: Final = 8000
ENGINE_USER: Final = 1000
"""User of a real engine, whose image would run as root; any other works too (`podTemplate`)."""
LOADING_SECONDS: Final = 7200
"""Time to fetch and load weights before a pod is started anew: 700 GB at 100 MB a second."""
SHARED_MEMORY: Final = "8Gi"
"""Limit of /dev/shm where several GPUs talk through it and the pool does not say."""
REPLICAS_ANNOTATION: Final = "hexflow.dev/replicas"
"""On the Deployment: the count that we applied, by which another's is known."""
CONTAINER: Final = "engine"
"""Name of the container, by which a `podTemplate` finds it."""


def port_of(pool: GPUPool) -> int:
    """Return the port at which each instance of the pool listens."""
    return (pool.spec.engine.port if pool.spec.engine else None) or ENGINE_PORT


def gpus_of(pool: GPUPool) -> int:
    """Return the GPUs that one instance takes."""
    gpu = pool.spec.gpu
    given = gpu is not None and "count" in gpu.model_fields_set
    return gpu.count if gpu and given else pool.spec.effective_tensor_parallel_size


def engine_deployment(
    pool: GPUPool, resource: Manifest, *, profile: Profile, replicas: int | None, defaults: Defaults
) -> dict[str, Any]:
    """Return the Deployment of a pool; ``replicas`` None leaves the count to whoever sets it."""
    spec: dict[str, Any] = {} if replicas is None else {"replicas": replicas}
    spec |= {
        "selector": {"matchLabels": selector("engine", pool.name)},
        # a surge would wait for a GPU that the pod it replaces still holds
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "progressDeadlineSeconds": LOADING_SECONDS + 600,
        "revisionHistoryLimit": 3,
        # as it was written: a null there takes something out, and the model has no nulls
        "template": _template(pool, resource["spec"].get("podTemplate"), profile=profile, defaults=defaults),
    }
    metadata = child_of(resource, part="engine", name=engine_name(pool.name))
    if replicas is not None:
        metadata["annotations"] = {REPLICAS_ANNOTATION: str(replicas)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _template(
    pool: GPUPool, patch: Manifest | None, *, profile: Profile, defaults: Defaults
) -> dict[str, Any]:
    own_labels = {**labels("engine", pool.name), GPU_TYPE_LABEL: pool.spec.gpu_type}
    emulated = pool.spec.emulated
    container = _emulator(pool, profile, defaults) if emulated else _engine(pool, profile, defaults)
    spec = {
        "automountServiceAccountToken": False,
        # a Service named vllm-… would set VLLM_… in every pod, which vLLM takes for its settings
        "enableServiceLinks": False,
        "securityContext": pod_security(user=None if emulated else ENGINE_USER),
        "terminationGracePeriodSeconds": OUT_OF_ROTATION_SECONDS + DRAIN_SECONDS + 30,
        "containers": [container],
        "volumes": [volume for volume, _ in _storage(pool)],
        **placed(pool.spec.placement, defaults),
    }
    template = {"metadata": {"labels": own_labels}, "spec": spec}
    if not patch:
        return template
    changed: dict[str, Any] = merged(template, patch)
    metadata = changed.get("metadata", {})
    changed["metadata"] = metadata | {"labels": {**metadata.get("labels", {}), **own_labels}}
    return changed


def _container(
    pool: GPUPool, defaults: Defaults, *, run: dict[str, Any], environment: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the container: ``run`` says which image and command."""
    engine = pool.spec.engine
    container: dict[str, Any] = {
        "name": CONTAINER,
        **run,
        "imagePullPolicy": defaults.image_pull_policy,
        "ports": [{"name": "http", "containerPort": port_of(pool), "protocol": "TCP"}],
        # one of the pool's takes the place of ours whole: a value and a valueFrom do not go together
        "env": list(
            {each["name"]: each for each in (*environment, *(engine.env if engine else ()))}.values()
        ),
        "lifecycle": prestop(),
        # it fails while the port is closed, which is until the model is loaded; nothing else is asked till then
        "startupProbe": http_probe("/health", period=5, failures=LOADING_SECONDS // 5),
        # lists what is served under which name: that a process answers is not enough
        "readinessProbe": http_probe("/v1/models", period=5, failures=3),
        # 503 once the engine behind the server is dead; a busy one answers late, hence the patience
        "livenessProbe": http_probe("/health", period=10, failures=6, timeout=10),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount for _, mount in _storage(pool)],
    }
    if engine and engine.env_from:
        container["envFrom"] = list(engine.env_from)
    return container


def _engine(pool: GPUPool, profile: Profile, defaults: Defaults) -> dict[str, Any]:
    spec = pool.spec
    home = {"HOME": "/scratch", "USER": "hexflow", "XDG_CACHE_HOME": "/scratch/.cache"}
    environment = variables({**home, "HF_HOME": "/cache/huggingface", "VLLM_NO_USAGE_STATS": "1"})
    if token := spec.model.hf_token_secret_ref:
        environment.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": token.model_dump()}})
    gpu = {(spec.gpu.resource_name if spec.gpu else "nvidia.com/gpu"): str(gpus_of(pool))}
    run = {
        "image": (spec.engine.image if spec.engine else None) or defaults.engine_image,
        "command": ["vllm"],
        "args": engine_arguments(pool, profile=profile, port=port_of(pool)),
        "resources": merged({"requests": gpu, "limits": gpu}, spec.resources or {}),
        "securityContext": container_security(read_only=False),
    }
    return _container(pool, defaults, run=run, environment=environment)


def _emulator(pool: GPUPool, profile: Profile, defaults: Defaults) -> dict[str, Any]:
    run = {
        "image": defaults.emulator_image,
        "command": ["python", "-m", "hexflow_emulator"],
        "args": emulator_arguments(pool, profile=profile, port=port_of(pool)),
        "resources": pool.spec.resources or {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": container_security(read_only=True),
    }
    return _container(pool, defaults, run=run, environment=variables({"HOME": "/scratch"}))


def _storage(pool: GPUPool) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return each volume along with its mount."""
    found = [_volume("scratch", "/scratch"), _volume("tmp", "/tmp")]  # noqa: S108 - a folder of the pod's own
    if pool.spec.emulated:
        return found
    claim, weights = pool.spec.cache.pvc if pool.spec.cache else None, weights_of(pool)
    found.append(_volume("cache", "/cache", _cache(pool), subPath=claim.sub_path if claim else None))
    if size := _shared_memory(pool):
        memory = {"emptyDir": {"medium": "Memory", "sizeLimit": size}}
        found.append(_volume("shared-memory", "/dev/shm", memory))  # noqa: S108
    if source := weights.volume:
        found.append(_volume("weights", WEIGHTS_PATH, source, readOnly=True, subPath=weights.sub_path))
    return found


def _volume(
    name: str, path: str, source: dict[str, Any] | None = None, **options: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    mount = {key: value for key, value in options.items() if value is not None}
    return {"name": name, **(source or {"emptyDir": {}})}, {"name": name, "mountPath": path, **mount}


def _cache(pool: GPUPool) -> dict[str, Any]:
    cache = pool.spec.cache
    if cache and cache.pvc:
        return {"persistentVolumeClaim": {"claimName": cache.pvc.claim_name}}
    if cache and cache.host_path:
        return {"hostPath": {"path": cache.host_path.path, "type": "DirectoryOrCreate"}}
    return {"emptyDir": (cache.empty_dir if cache else None) or {}}


def _shared_memory(pool: GPUPool) -> str | None:
    return pool.spec.shared_memory or (SHARED_MEMORY if gpus_of(pool) > 1 else None)
