from hexflow_cluster import Kind, selector_text
from hexflow_cluster.kind import Resource

DEPLOYMENT = Resource(kind=Kind("apps/v1", "Deployment"), plural="deployments", namespaced=True)
NAMESPACE = Resource(kind=Kind("v1", "Namespace"), plural="namespaces", namespaced=False)


def test_paths_are_those_of_the_api_server() -> None:
    assert DEPLOYMENT.path() == "/apis/apps/v1/deployments"
    assert DEPLOYMENT.path(namespace="team") == "/apis/apps/v1/namespaces/team/deployments"
    assert (
        DEPLOYMENT.path(namespace="team", name="a", subresource="status")
        == "/apis/apps/v1/namespaces/team/deployments/a/status"
    )
    assert NAMESPACE.path(name="team", namespace="ignored") == "/api/v1/namespaces/team"


def test_a_name_cannot_leave_its_place_in_the_path() -> None:
    assert DEPLOYMENT.path(namespace="team", name="a/../b").endswith("/deployments/a%2F..%2Fb")


def test_selectors_are_written_as_the_api_server_reads_them() -> None:
    selector = {
        "matchLabels": {"app": "vllm"},
        "matchExpressions": [
            {"key": "gpu", "operator": "In", "values": ["a", "b"]},
            {"key": "zone", "operator": "NotIn", "values": ["c"]},
            {"key": "ready", "operator": "Exists"},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    }
    assert selector_text(selector) == "app=vllm,gpu in (a,b),zone notin (c),ready,!old"
