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
