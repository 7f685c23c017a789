"""The operator against a Kubernetes that fails: whatever happened, in the end all is as if nothing had."""

import random
import time
from collections.abc import Callable

import pytest

from support.apiproxy import Answer, ApiProxy, Cut, LoseAnswer, Slow
from support.apiserver import ApiServer
from support.auditlog import AuditLog
from support.kubernetes import Api
from support.objects import Objects
from support.operators import OperatorProcess, Operators, install
from support.resources import pool_data, workflow_data
from support.waiting import until

SHORT_LEASE = "--lease-seconds=9"
LONG_LEASE = "--lease-seconds=600"
"""So that an outage does not end the operator, whose memory is what is tested."""


def names(objects: Objects) -> set[str]:
    return set(objects.children())


def expected(*pools: str, router: bool = True) -> set[str]:
    made = {
        f"{kind}/{pool}-engine" for pool in pools for kind in ("Deployment", "Service", "PodDisruptionBudget")
    }
    parts = ("Deployment", "Service", "ConfigMap", "ServiceAccount", "RoleBinding") if router else ()
    return made | {f"{kind}/hexflow-router" for kind in parts}


def until_settled(objects: Objects, wanted: set[str], *, seconds: float = 90) -> None:
    """Wait until all that should be there is, as it should be, and nothing else."""
    try:
        until(lambda: names(objects) == wanted and objects.left_to_do() == [], seconds=seconds)
    except AssertionError:
        assert names(objects) == wanted
        assert objects.left_to_do() == []


@pytest.fixture
def patient(operators: Operators) -> OperatorProcess:
    """Start an operator that outlives an outage."""
    operator = operators.start(LONG_LEASE)
    operator.until_leading()
    return operator


def test_what_was_deleted_and_changed_while_the_api_server_was_down_is_noticed(
    api_server: ApiServer, patient: OperatorProcess, objects: Objects
) -> None:
    for name in ("ghost", "changed", "kept"):
        objects.apply(pool_data(name, emulated=True, replicas=1))
    patient.until_quiet()
    api_server.stop()
    with api_server.second() as meanwhile:
        there = Objects(meanwhile, objects.namespace)
        there.delete("GPUPool", "ghost")
        there.apply(pool_data("changed", emulated=True, replicas=3))
        there.apply(pool_data("new", emulated=True, replicas=1))
        there.delete("Service", "kept-engine")
        there.patch("Deployment", "kept-engine", {"spec": {"replicas": 9}})
    api_server.start()
    until_settled(objects, expected("changed", "kept", "new"))
    assert objects.get("Deployment", "changed-engine")["spec"]["replicas"] == 3
    assert objects.get("Deployment", "kept-engine")["spec"]["replicas"] == 1
    assert "ghost" not in str(objects.get("ConfigMap", "hexflow-router")["data"])
    patient.until_quiet()


def test_the_last_resource_that_went_while_the_api_server_was_down_leaves_nothing(
    api_server: ApiServer, patient: OperatorProcess, objects: Objects
) -> None:
    objects.apply(pool_data("last", emulated=True, replicas=1))
    patient.until_quiet()
    api_server.stop()
    with api_server.second() as meanwhile:
        Objects(meanwhile, objects.namespace).delete("GPUPool", "last")
    api_server.start()
    until_settled(objects, set())
    patient.until_quiet()
    assert names(objects) == set(), "and nobody makes it again"


def test_watches_that_are_cut_or_told_that_they_are_too_old_miss_nothing(
    operators: Operators, api_proxy: ApiProxy, objects: Objects
) -> None:
    operator = operators.start(url=api_proxy.url)
    operator.until_leading()
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    operator.until_quiet()
    interruptions: tuple[Callable[[], int], ...] = (
        lambda: api_proxy.cut(watches=True),
        api_proxy.expire,
        api_proxy.cut,
    )
    for replicas, interrupt in enumerate(interruptions, 2):
        assert interrupt() > 0
        objects.apply(pool_data("a100", emulated=True, replicas=replicas))
        objects.delete("Service", "a100-engine")
        until(lambda: objects.get("Deployment", "a100-engine")["spec"]["replicas"] == replicas, seconds=60)  # noqa: B023
        until_settled(objects, expected("a100"))
    api_proxy.refuse()
    objects.delete("GPUPool", "a100")
    objects.apply(pool_data("l40s", emulated=True, replicas=1))
    time.sleep(2)
    api_proxy.well()
    until_settled(objects, expected("l40s"))


@pytest.mark.parametrize(
    "fault",
    [
        Answer(429, headers={"Retry-After": "1"}),
        Answer(500),
        Answer(503),
        Answer(409),
        LoseAnswer(),
        Cut(),
        Slow(2.0),
    ],
    ids=lambda fault: f"{type(fault).__name__}{getattr(fault, 'status', '')}",
)
def test_requests_that_fail_lead_to_the_same_end(
    fault: Answer | LoseAnswer | Cut | Slow, operators: Operators, api_proxy: ApiProxy, objects: Objects
) -> None:
    operator = operators.start(url=api_proxy.url)
    operator.until_leading()
    rules = [api_proxy.fault(fault, method="PATCH", times=6)]
    if fault != Answer(409):  # nobody answers so to who reads
        rules.append(api_proxy.fault(fault, method="GET", watch=False, path="hexflow.dev", times=3))
    for name in ("a100", "l40s"):
        objects.apply(pool_data(name, emulated=True, replicas=1))
    until_settled(objects, expected("a100", "l40s"))
    assert sum(rule.hits for rule in rules) >= 6
    until(lambda: all(objects.get("GPUPool", name).get("status") for name in ("a100", "l40s")), seconds=60)


def test_an_operator_that_is_killed_at_any_moment_of_a_rollout_finishes_it_when_it_comes_back(
    operators: Operators, api_proxy: ApiProxy, objects: Objects
) -> None:
    chance = random.Random(5)
    flags = (SHORT_LEASE, "--identity=the-one")  # the same name: it need not wait for its own lease to end
    operator = operators.start(*flags, url=api_proxy.url)
    operator.until_leading()
    pools = ("a100", "l40s", "a6000")
    for kill in range(20):
        for name in pools:
            objects.apply(pool_data(name, emulated=True, replicas=1 + kill % 7, maxModelLen=4096 + kill))
        if kill % 5 == 4:
            objects.apply(workflow_data("shop"))
        writes = sum(seen.method == "PATCH" for seen in api_proxy.seen)
        after = chance.randrange(1, 4 if kill else 20)
        until(lambda: sum(seen.method == "PATCH" for seen in api_proxy.seen) >= writes + after, seconds=60)  # noqa: B023
        time.sleep(chance.random() / 20)
        operator.kill()
        operator.start()
    until_settled(objects, expected(*pools))
    operator.until_quiet()
    assert objects.left_to_do() == []


def test_a_second_operator_waits_and_takes_over_when_the_first_is_killed(
    operators: Operators, objects: Objects, audit_log: AuditLog, api_server: ApiServer
) -> None:
    first, second, user = _two(operators, api_server.api)
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    first.until_quiet()
    assert second.probe("/readyz") == 200, "one that waits is ready, or a rolling update never ends"
    assert not [each for each in audit_log.writes(user=user) if each.resource != "leases"]
    first.kill()
    objects.apply(pool_data("l40s", emulated=True, replicas=1))
    until_settled(objects, expected("a100", "l40s"))
    _no_overlap(audit_log, operators, user)


def test_an_operator_that_is_told_to_end_hands_over_at_once(
    operators: Operators, objects: Objects, api_server: ApiServer
) -> None:
    first, second, _ = _two(operators, api_server.api, "--lease-seconds=120")
    first.stop()
    began = time.monotonic()
    second.until_leading()
    assert time.monotonic() - began < 60
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    until_settled(objects, expected("a100"))


def test_a_leader_that_was_frozen_writes_nothing_once_another_leads(
    operators: Operators, objects: Objects, audit_log: AuditLog, api_server: ApiServer
) -> None:
    first, second, user = _two(operators, api_server.api)
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    first.until_quiet()
    first.freeze()
    objects.apply(pool_data("a100", emulated=True, replicas=2))
    second.until_quiet()
    objects.apply(pool_data("a100", emulated=True, replicas=3))
    first.thaw()
    until(lambda: not first.running, seconds=60)
    second.until_quiet()
    until_settled(objects, expected("a100"))
    _no_overlap(audit_log, operators, user)


def _two(
    operators: Operators, api: Api, lease: str = SHORT_LEASE
) -> tuple[OperatorProcess, OperatorProcess, str]:
    """Start one that leads and one that waits, each with a ServiceAccount of its own; return the second's user."""
    install(api, operators.namespace, account="second")
    first = operators.start(lease)
    first.until_leading()
    second = operators.start(lease, account="second")
    until(lambda: "waiting" in second.log(), seconds=60)
    return first, second, operators.user_of("second")


def _no_overlap(log: AuditLog, operators: Operators, second: str) -> None:
    """Check that all writes of the first were before all writes of the second."""

    def times(user: str) -> list[str]:
        return sorted(
            each.time for each in log.writes(user=user) if each.resource != "leases" and each.status < 400
        )

    before, after = times(operators.user), times(second)
    assert before
    assert after
    assert before[-1] < after[0]


def test_the_operator_waits_for_its_kinds_and_outlives_an_api_server_that_is_not_there_yet(
    operators: Operators, api_proxy: ApiProxy, objects: Objects
) -> None:
    api_proxy.refuse()
    operator = operators.start(url=api_proxy.url)
    until(lambda: "cannot be reached" in operator.log(), seconds=60)
    assert (operator.probe("/healthz"), operator.probe("/readyz")) == (200, 503)
    api_proxy.well()
    operator.until_leading()
    assert operator.probe("/readyz") == 200
