from pathlib import Path

from hexflow_api import GPUPool, Resources
from hexflow_router.fleet import Fleet, fleet_of
from hexflow_scheduler import InstanceState
from support.resources import MODEL, a_pool


def keep(folder: Path, name: str, key: str, text: str) -> None:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / key).write_text(text)


def a_fleet(folder: Path, *pools: GPUPool) -> Fleet:
    return fleet_of(Resources(pools=pools), folder)


def test_a_pool_has_the_speed_of_its_gpu_and_the_bounds_of_its_resource(tmp_path: Path) -> None:
    bounds = {"maxNumSeqs": 16, "maxModelLen": 8192, "priorityScheduling": False, "prefixCaching": False}
    fleet = a_fleet(tmp_path, a_pool("a100", **bounds))
    (pool,) = fleet.pools
    assert (pool.name, pool.model, pool.gpu_type) == ("a100", MODEL, "A100-80GB")
    assert pool.profile.slots == 16
    assert pool.profile.t0 > 0
    instance = pool.instance("x", state=InstanceState.READY, max_context=32_768)
    assert (instance.max_context, instance.takes_priority, instance.prefix_caching) == (8192, False, False)
    assert fleet.problems == ()


def test_endpoints_have_their_keys_from_files(tmp_path: Path) -> None:
    keep(tmp_path, "engine", "key", "s3cret\n")
    endpoint = {"url": "http://10.0.0.7:8000/v1/", "apiKeySecretRef": {"name": "engine", "key": "key"}}
    (pool,) = a_fleet(tmp_path, a_pool(endpoints=[endpoint])).pools
    (address,) = pool.endpoints
    assert (address.url, address.api_key) == ("http://10.0.0.7:8000", "s3cret")
    assert "s3cret" not in repr(pool)


def test_a_missing_key_leaves_its_endpoint_out_and_says_which(tmp_path: Path) -> None:
    bad = {"url": "http://one:8000", "apiKeySecretRef": {"name": "nowhere", "key": "key"}}
    fleet = a_fleet(tmp_path, a_pool(endpoints=[bad, {"url": "http://two:8000"}]))
    assert [address.url for address in fleet.pools[0].endpoints] == ["http://two:8000"]
    assert "http://one:8000" in fleet.problems[0]
    assert "nowhere" in fleet.problems[0]


def test_an_authority_that_is_no_certificate_is_a_problem(tmp_path: Path) -> None:
    keep(tmp_path, "ca", "ca.crt", "not a certificate")
    bad = {"url": "https://one:8000", "caSecretRef": {"name": "ca", "key": "ca.crt"}}
    fleet = a_fleet(tmp_path, a_pool(endpoints=[bad]))
    assert fleet.pools[0].endpoints == ()
    assert "caSecretRef" in fleet.problems[0]


def test_a_pool_whose_speed_nobody_knows_is_a_problem_and_the_others_work(tmp_path: Path) -> None:
    unknown = a_pool("odd", gpuType="Abacus-9000", emulated=True)
    fleet = a_fleet(tmp_path, unknown, a_pool("a100"))
    assert [pool.name for pool in fleet.pools] == ["a100"]
    assert "odd" in fleet.problems[0]


def test_a_suspended_pool_has_no_endpoints(tmp_path: Path) -> None:
    (pool,) = a_fleet(tmp_path, a_pool(endpoints=[{"url": "http://one:8000"}], suspend=True)).pools
    assert pool.suspended
    assert pool.endpoints == ()


def test_a_pod_on_another_gpu_has_that_ones_speed_unless_the_pool_says_a_profile(tmp_path: Path) -> None:
    (pool,) = a_fleet(tmp_path, a_pool(maxNumSeqs=16)).pools
    old = pool.on("L40S")
    assert (old.gpu_type, old.profile.slots) == ("L40S", 16)
    assert old.profile.t2 > pool.profile.t2
    assert "l40s" in old.profile_name
    assert pool.on(None) is pool
    assert pool.on("A100-80GB") is pool
    (given,) = a_fleet(tmp_path, a_pool(profile={"builtin": pool.profile_name})).pools
    assert given.on("L40S").profile == given.profile
    assert pool.on("Abacus").profile == pool.profile


def test_pods_are_found_by_the_operators_label_or_by_the_pools_selector(tmp_path: Path) -> None:
    expressions = [
        {"key": "tier", "operator": "In", "values": ["prod", "canary"]},
        {"key": "zone", "operator": "NotIn", "values": ["c"]},
        {"key": "model", "operator": "Exists"},
        {"key": "retired", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"app": "vllm"}, "matchExpressions": expressions}
    made, own = a_fleet(
        tmp_path, a_pool("made"), a_pool("own", selector=selector, engine={"port": 9000})
    ).pools
    assert (made.pods.labels, made.pods.port) == ("hexflow.dev/pool", 8000)
    assert own.pods.labels == "app=vllm,tier in (prod,canary),zone notin (c),model,!retired"
    assert own.pods.port == 9000


def test_a_missing_secret_of_an_endpoint_is_told_for_the_status(tmp_path: Path) -> None:
    endpoint = {"url": "http://10.0.0.7:8000", "apiKeySecretRef": {"name": "engine", "key": "key"}}
    (problem,) = a_fleet(tmp_path, a_pool("outside", endpoints=[endpoint])).reported
    assert (problem.kind, problem.name, problem.reason) == ("GPUPool", "outside", "SecretNotFound")
    assert "Secret engine has no key key for endpoint http://10.0.0.7:8000" in problem.message
    assert str(tmp_path) not in problem.message
