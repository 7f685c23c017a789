"""Every name that a resource gives must be something that is there."""

import pytest

from hexflow_api import GPUPool, Resources, TextToSQLWorkflow
from hexflow_api.manifest import ConfigMap
from hexflow_api.reference import dangling
from support.resources import a_pool, a_secret, a_workflow, resources_of

CANDIDATES = {"name": "candidates", "kind": "CandidateGeneration"}


def findings(resources: Resources, *, secrets_elsewhere: bool = False) -> list[str]:
    return [f"{path}: {text}" for _, path, text in dangling(resources, secrets_elsewhere=secrets_elsewhere)]


def finding(*objects: GPUPool | TextToSQLWorkflow) -> str:
    (found,) = findings(resources_of(a_secret(), *objects))
    return found


def test_resources_that_name_what_is_there_are_right() -> None:
    assert findings(resources_of(a_pool(), a_workflow(), a_secret())) == []


def test_a_workflow_without_any_pool() -> None:
    assert finding(a_workflow()) == "spec.pools: there is no GPUPool in namespace default; add one"


def test_a_pool_that_is_not_there() -> None:
    assert finding(a_pool(), a_workflow(pools={"names": ["a100", "a10"]})) == (
        "spec.pools.names[1]: there is no GPUPool 'a10' here; did you mean 'a100'?"
    )
    assert finding(a_pool(), a_workflow(stages=[CANDIDATES | {"pools": ["xyz"]}])) == (
        "spec.stages[0].pools[0]: there is no GPUPool 'xyz' here; there is a100"
    )


def test_labels_that_no_pool_has() -> None:
    workflow = a_workflow(pools={"selector": {"matchLabels": {"tier": "gold"}}})
    assert finding(a_pool(), workflow) == (
        "spec.pools.selector: no GPUPool has these labels; the pools here are a100"
    )


def test_a_model_that_no_pool_serves() -> None:
    assert finding(a_pool(), a_workflow(stages=[CANDIDATES | {"model": "other-7b"}])) == (
        "spec.stages[0]: no pool of this workflow serves the model other-7b of stage candidates;"
        " its pools serve Qwen/Qwen2.5-Coder-32B-Instruct"
    )


def test_a_stage_that_could_run_on_two_models() -> None:
    small = a_pool("small", model={"name": "Qwen/Qwen2.5-Coder-7B-Instruct"}, tensorParallelSize=1)
    assert finding(a_pool(), small, a_workflow()) == (
        "spec.pools: stage schema-linking may run on several models: Qwen/Qwen2.5-Coder-32B-Instruct,"
        " Qwen/Qwen2.5-Coder-7B-Instruct; say which with model, or fewer with pools"
    )


def test_a_missing_secret_and_a_missing_key() -> None:
    assert findings(resources_of(a_pool(), a_workflow())) == [
        "spec.databases[0].dsnSecretRef: there is no Secret 'shop' here; add a v1 Secret with the key dsn to the files"
    ]
    assert findings(resources_of(a_pool(), a_workflow(), a_secret("shops"))) == [
        "spec.databases[0].dsnSecretRef: there is no Secret 'shop' here; did you mean 'shops'?"
    ]
    assert findings(resources_of(a_pool(), a_workflow(), a_secret(dns="sqlite:///x"))) == [
        "spec.databases[0].dsnSecretRef: Secret 'shop' has no key 'dsn'; did you mean 'dns'?"
    ]
    assert findings(resources_of(a_pool(), a_workflow()), secrets_elsewhere=True) == []


def test_a_secret_of_another_namespace_does_not_count() -> None:
    assert "no Secret 'shop'" in findings(resources_of(a_pool(), a_workflow(), a_secret(namespace="b")))[0]


def test_an_endpoints_key_must_be_there_but_a_token_for_weights_need_not() -> None:
    pool = a_pool(
        endpoints=[{"url": "http://h", "apiKeySecretRef": {"name": "llm", "key": "k"}}],
        model={"name": "m-7b", "hfTokenSecretRef": {"name": "hf", "key": "token"}},
    )
    assert finding(pool) == (
        "spec.endpoints[0].apiKeySecretRef: there is no Secret 'llm' here; there is shop"
    )


@pytest.mark.parametrize(
    "dsn", ["postgresql://u:pw@h/db", "shop.sqlite", "sqlite://", "sqlite:///", "sqlite:///:memory:"]
)
def test_an_address_that_names_no_sqlite_file(dsn: str) -> None:
    (found,) = findings(resources_of(a_pool(), a_workflow(), a_secret(dsn=dsn)))
    assert "the value of shop/dsn is not the address of a SQLite file; write sqlite:///shop.sqlite" in found
    assert "pw" not in found


def test_two_tenants_with_one_key() -> None:
    tenants = [{"name": name, "apiKeySecretRef": {"name": "keys", "key": name}} for name in ("a", "b")]
    keys = a_secret("keys", a="same", b="same")
    assert findings(resources_of(a_pool(), a_workflow(tenants=tenants), a_secret(), keys)) == [
        "spec.tenants[1].apiKeySecretRef: tenants a and b have one key; give each its own"
    ]


@pytest.mark.parametrize("key", ["", "two words", "naïve", "line\n"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    tenants = [{"name": "a", "apiKeySecretRef": {"name": "keys", "key": "a"}}]
    resources = resources_of(a_pool(), a_workflow(tenants=tenants), a_secret(), a_secret("keys", a=key))
    assert "cannot be sent as a key; use printable ASCII without blanks" in findings(resources)[0]


def test_a_profile_from_a_config_map() -> None:
    pool = a_pool(profile={"configMapRef": {"name": "speeds", "key": "a100"}})
    assert finding(pool) == (
        "spec.profile.configMapRef: there is no ConfigMap 'speeds' with the key 'a100' here; add it, or correct the name"
    )
    speeds = ConfigMap(
        name="speeds", data={"a100": "{t0: 0.02, t1: 0, t2: 0, c1: 1e-4, c2: 0, kvTokens: 9000}"}
    )
    assert findings(Resources(pools=(pool,), config_maps=(speeds,))) == []
