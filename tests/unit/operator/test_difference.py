from copy import deepcopy
from typing import Any

import pytest

from hexflow_operator.difference import APPLIED_ANNOTATION, covers, same_amount, stamped, to_apply

Object = dict[str, Any]


def a_deployment(**spec: Any) -> Object:
    return {"kind": "Deployment", "metadata": {"name": "x", "namespace": "team"}, "spec": spec}


def a_container(**fields: Any) -> Object:
    return {"name": "engine", **fields}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000m", "1"),
        ("1", 1),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1e3", "1k"),
        ("2000000000", "2G"),
        ("100Gi", "107374182400"),
    ],
)
def test_quantities_are_compared_as_amounts(one: Any, other: Any) -> None:
    assert same_amount(one, other)
    assert covers({"limits": {"cpu": one}}, {"limits": {"cpu": other}})


@pytest.mark.parametrize(
    ("one", "other"), [("1", "2"), ("1Gi", "1G"), ("1", None), ("x", "y"), ("1.2.3", "1"), ("", "0")]
)
def test_other_quantities_differ(one: Any, other: Any) -> None:
    assert not same_amount(one, other)


def test_text_that_looks_like_a_quantity_is_text_elsewhere() -> None:
    assert not covers({"value": "1"}, {"value": "1000m"})


def test_what_others_have_added_is_left_alone() -> None:
    observed = a_deployment(
        replicas=7, template={"spec": {"containers": [a_container(), {"name": "injected"}]}}
    )
    observed["metadata"] |= {"annotations": {"injector": "was here"}, "resourceVersion": "7"}
    assert covers(observed, a_deployment(template={"spec": {"containers": [a_container()]}}))


def test_what_is_ours_and_was_changed_is_seen() -> None:
    desired = a_deployment(template={"spec": {"containers": [a_container(image="a")]}})
    observed = a_deployment(template={"spec": {"containers": [a_container(image="b")]}})
    assert not covers(observed, desired)


def test_items_of_named_lists_may_change_their_order_and_others_may_not() -> None:
    env = [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]
    assert covers({"env": env[::-1]}, {"env": env})
    assert not covers({"args": ["a", "b"]}, {"args": ["b", "a"]})
    assert not covers({"args": ["a", "b", "c"]}, {"args": ["a", "b"]})


def test_a_port_without_a_protocol_is_tcp() -> None:
    assert covers({"ports": [{"containerPort": 80, "protocol": "TCP"}]}, {"ports": [{"containerPort": 80}]})
    assert not covers({"ports": [{"port": 80, "protocol": "UDP"}]}, {"ports": [{"port": 80}]})


@pytest.mark.parametrize("empty", ["", [], False, 0, None])
def test_an_empty_value_may_come_back_as_none(empty: Any) -> None:
    assert covers({}, {"field": empty})


@pytest.mark.parametrize(
    "desired",
    [
        {"emptyDir": {}},
        {"automountServiceAccountToken": False},
        {"replicas": 0},
        {"field": "x"},
        {"field": 1},
    ],
)
def test_what_says_something_by_being_there_may_not_be_missing(desired: Object) -> None:
    assert not covers({}, desired)


def test_true_is_not_one() -> None:
    assert not covers({"field": True}, {"field": 1})


def test_a_group_in_the_place_of_a_text_differs() -> None:
    assert not covers({"field": "x"}, {"field": {"a": 1}})
    assert not covers({"field": "x"}, {"field": ["x"]})


def test_a_child_that_is_not_there_is_applied() -> None:
    assert to_apply([a_deployment(replicas=1)], []) == (stamped(a_deployment(replicas=1)),)


def test_a_field_that_we_no_longer_want_is_applied_away() -> None:
    observed = stamped(a_deployment(replicas=2, paused=True))
    assert to_apply([a_deployment(replicas=2, paused=True)], [observed]) == ()
    (manifest,) = to_apply([a_deployment(replicas=2)], [observed])
    assert "paused" not in manifest["spec"]


def test_stamping_changes_nothing_of_what_it_is_given() -> None:
    manifest = a_deployment(replicas=1)
    before = deepcopy(manifest)
    assert stamped(manifest)["metadata"]["annotations"][APPLIED_ANNOTATION]
    assert manifest == before


def test_an_owner_that_is_missing_is_added_and_another_is_left() -> None:
    mine, other = {"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}
    assert covers({"ownerReferences": [other, mine]}, {"ownerReferences": [mine]})
    assert not covers({"ownerReferences": [other]}, {"ownerReferences": [mine]})
