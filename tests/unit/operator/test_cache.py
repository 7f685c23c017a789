from typing import Any

from hexflow_operator.cache import Cache, stripped
from hexflow_operator.observed import Key

KEY = Key("GPUPool", "team", "a100")
LABELS = {"hexflow.dev/part": "engine", "hexflow.dev/pool": "a100"}


def an_object(
    kind: str, name: str, version: int, *, uid: str = "", labels: dict[str, str] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            **({"labels": labels} if labels else {}),
        },
    }


def a_child(version: int, **fields: Any) -> dict[str, Any]:
    return an_object("Deployment", "a100-engine", version, labels=LABELS, **fields)


def test_of_each_object_the_newest_version_stays_however_it_came() -> None:
    cache = Cache()
    assert cache.put(a_child(9)) is not None
    assert cache.put(a_child(9)) is None, "the echo of our own write is no news"
    assert cache.put(a_child(8)) is None, "an event that was overtaken changes nothing"
    change = cache.put(a_child(10))
    assert change is not None
    assert change.before == a_child(9)
    assert cache.children(KEY) == (a_child(10),)
    assert len(cache) == 1


def test_an_object_that_came_back_under_its_old_name_takes_the_place_of_the_old() -> None:
    cache = Cache()
    cache.put(a_child(5))
    cache.put(a_child(9, uid="another"))
    assert cache.drop(a_child(6)) is None, "the end of the old one is not that of the new"
    assert [each["metadata"]["uid"] for each in cache.children(KEY)] == ["another"]


def test_a_late_answer_does_not_bring_back_what_was_deleted() -> None:
    cache = Cache()
    cache.put(a_child(5))
    cache.drop(a_child(6))
    assert cache.put(a_child(5)) is None
    assert cache.children(KEY) == ()
    assert len(cache) == 0


def test_a_child_that_lost_its_label_and_got_it_back_is_the_same_object_and_there_again() -> None:
    cache = Cache()
    cache.put(a_child(5))
    cache.drop(a_child(6))
    assert cache.put(a_child(7)) is not None
    assert cache.children(KEY) == (a_child(7),)


def test_a_child_whose_label_was_changed_is_no_longer_of_its_key() -> None:
    cache = Cache()
    cache.put(a_child(5))
    cache.put(an_object("Deployment", "a100-engine", 6, labels=LABELS | {"hexflow.dev/pool": "l40s"}))
    assert cache.children(KEY) == ()
    assert len(cache.children(Key("GPUPool", "team", "l40s"))) == 1


def test_pods_are_kept_apart_from_the_other_children() -> None:
    cache = Cache()
    cache.put(a_child(5))
    cache.put(an_object("Pod", "a100-engine-1", 6, labels=LABELS))
    assert [each["kind"] for each in cache.pods(KEY)] == ["Pod"]
    assert [each["kind"] for each in cache.children(KEY)] == ["Deployment"]


def test_there_are_keys_for_resources_and_for_what_has_outlived_them() -> None:
    cache = Cache()
    cache.put(an_object("TextToSQLWorkflow", "shop", 1))
    cache.put(a_child(5))
    assert cache.all_keys() == {Key("TextToSQLWorkflow", "team", "shop"), KEY}
    assert cache.namespaces() == {"team"}
    cache.drop(an_object("TextToSQLWorkflow", "shop", 1))
    assert cache.namespaces() == set()


def test_what_nobody_reads_is_not_kept() -> None:
    pod = an_object("Pod", "a", 1, labels=LABELS)
    pod["metadata"]["managedFields"] = [{"manager": "kubelet"}]
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "1"}
    pod["spec"] = {"nodeName": "n", "volumes": [{"name": "v"}], "containers": [{"name": "c", "image": "i"}]}
    slim = stripped(pod)
    assert slim["metadata"]["annotations"] == {"mine": "1"}
    assert "managedFields" not in slim["metadata"]
    assert slim["spec"] == {"nodeName": "n", "containers": [{"name": "c"}]}
    assert pod["spec"]["volumes"], "what was given is not changed"
