"""What must hold between objects: every name that one resource gives must be something that is there.

The API server cannot check this; in a cluster the operator says it in conditions, on a laptop the loader refuses.
"""

from collections.abc import Iterator

from hexflow_api.explain import did_you_mean
from hexflow_api.gpupool import GPUPool
from hexflow_api.inforce import profile_of
from hexflow_api.problem import ResourceError
from hexflow_api.resources import Resources
from hexflow_api.secret import SQLITE_SCHEME, secret_refs
from hexflow_api.workflow import TextToSQLWorkflow

Finding = tuple[GPUPool | TextToSQLWorkflow, str, str]
"""The resource, the place in it, what is wrong."""


def dangling(resources: Resources, *, secrets_elsewhere: bool) -> Iterator[Finding]:
    """Yield what is named by a resource and is not there."""
    for pool in resources.pools:
        yield from _profile(resources, pool)
    for workflow in resources.workflows:
        yield from _pools(resources, workflow)
    if secrets_elsewhere:
        return
    for pool in resources.pools:
        yield from _secrets(resources, pool)
    for workflow in resources.workflows:
        yield from _secrets(resources, workflow)
        yield from _addresses(resources, workflow)
        yield from _keys(resources, workflow)


def _profile(resources: Resources, pool: GPUPool) -> Iterator[Finding]:
    try:
        profile_of(pool, resources)
    except ResourceError as error:
        yield from ((pool, problem.path, problem.message) for problem in error.problems)


def _pools(resources: Resources, workflow: TextToSQLWorkflow) -> Iterator[Finding]:
    there = [pool.name for pool in resources.pools if pool.metadata.namespace == workflow.metadata.namespace]
    if not there:
        yield (
            workflow,
            "spec.pools",
            f"there is no GPUPool in namespace {workflow.metadata.namespace}; add one",
        )
        return
    complete = True
    for place, name in _pool_names(workflow):
        if name not in there:
            complete = False
            yield workflow, place, f"there is no GPUPool '{name}' here{_offer(name, there)}"
    if complete and not resources.pools_of(workflow):
        yield (
            workflow,
            "spec.pools.selector",
            f"no GPUPool has these labels; the pools here are {', '.join(there)}",
        )
    elif complete:
        yield from _models(resources, workflow)


def _models(resources: Resources, workflow: TextToSQLWorkflow) -> Iterator[Finding]:
    for index, stage in enumerate(workflow.spec.effective_stages()):
        try:
            resources.model_of(workflow, stage)
        except ResourceError as error:
            place = f"spec.stages[{index}]" if workflow.spec.stages else "spec.pools"
            yield workflow, place, error.problems[0].message
            if not workflow.spec.stages:
                return


def _pool_names(workflow: TextToSQLWorkflow) -> Iterator[tuple[str, str]]:
    if workflow.spec.pools:
        for index, name in enumerate(workflow.spec.pools.names or ()):
            yield f"spec.pools.names[{index}]", name
    for index, stage in enumerate(workflow.spec.stages):
        for position, name in enumerate(stage.pools or ()):
            yield f"spec.stages[{index}].pools[{position}]", name


def _secrets(resources: Resources, resource: GPUPool | TextToSQLWorkflow) -> Iterator[Finding]:
    namespace = resource.metadata.namespace
    for place, ref in secret_refs(resource):
        if place.endswith("hfTokenSecretRef"):
            continue  # only pods that load weights need it
        secret = resources.secret(ref.name, namespace=namespace)
        if secret is None:
            names = [each.name for each in resources.secrets if each.namespace == namespace]
            hint = _offer(ref.name, names) or "; add a v1 Secret with the key " + ref.key + " to the files"
            yield resource, place, f"there is no Secret '{ref.name}' here{hint}"
        elif ref.key not in secret.data:
            yield (
                resource,
                place,
                f"Secret '{ref.name}' has no key '{ref.key}'{_offer(ref.key, list(secret.data))}",
            )


def _addresses(resources: Resources, workflow: TextToSQLWorkflow) -> Iterator[Finding]:
    for index, database in enumerate(workflow.spec.databases):
        value = _value(resources, workflow, database.dsn_secret_ref.name, database.dsn_secret_ref.key)
        if value is None or database.dialect != "sqlite":
            continue
        path = value.strip().removeprefix(SQLITE_SCHEME)
        if path == value.strip() or not path or path == ":memory:":
            yield (
                workflow,
                f"spec.databases[{index}].dsnSecretRef",
                f"the value of {database.dsn_secret_ref} is not the address of a SQLite file; write"
                f" {SQLITE_SCHEME}shop.sqlite (from the folder of its YAML file) or {SQLITE_SCHEME}/srv/shop.sqlite",
            )


def _keys(resources: Resources, workflow: TextToSQLWorkflow) -> Iterator[Finding]:
    owners: dict[str, str] = {}
    for index, tenant in enumerate(workflow.spec.tenants):
        ref = tenant.api_key_secret_ref
        value = _value(resources, workflow, ref.name, ref.key) if ref else None
        if ref is None or value is None:
            continue
        place = f"spec.tenants[{index}].apiKeySecretRef"
        if not value.isascii() or not value.isprintable() or " " in value or not value:
            yield (
                workflow,
                place,
                f"the value of {ref} cannot be sent as a key; use printable ASCII without blanks",
            )
        elif value in owners:
            yield (
                workflow,
                place,
                f"tenants {owners[value]} and {tenant.name} have one key; give each its own",
            )
        owners.setdefault(value, tenant.name)


def _value(resources: Resources, workflow: TextToSQLWorkflow, name: str, key: str) -> str | None:
    secret = resources.secret(name, namespace=workflow.metadata.namespace)
    return secret.data.get(key) if secret else None


def _offer(name: str, known: list[str]) -> str:
    if not known:
        return ""
    return did_you_mean(name, known) or f"; there is {', '.join(known)}"
