from typing import Any

import pytest

from hexflow_router.auth import AuthError, Doorkeeper, LimitError, Limits, Tenant, fingerprint

GOLD = Tenant(name="analytics", workflow="shop", slo_class="gold", keyed=True)
OTHER = Tenant(name="fleet", workflow="cars", keyed=True)
GUEST = Tenant(name="guest", workflow="open")
DOOR = Doorkeeper(
    tenants={"shop": (GOLD,), "cars": (OTHER,), "open": (GUEST,)},
    keys={fingerprint("gold-key"): (GOLD,), fingerprint("car-key"): (OTHER,)},
)


def test_a_key_says_who_its_owner_is() -> None:
    assert DOOR.admit(authorization="Bearer gold-key", workflow="shop") == GOLD
    assert DOOR.admit(authorization="bearer  gold-key ", workflow="shop") == GOLD


@pytest.mark.parametrize("authorization", [None, "", "gold-key", "Basic gold-key", "Bearer ", "Bearer wrong"])
def test_without_a_known_key_a_workflow_with_keys_is_closed(authorization: Any) -> None:
    with pytest.raises(AuthError) as error:
        DOOR.admit(authorization=authorization, workflow="shop")
    assert error.value.status == 401
    assert "wrong" not in str(error.value)


def test_a_key_of_another_workflow_is_forbidden() -> None:
    with pytest.raises(AuthError) as error:
        DOOR.admit(authorization="Bearer car-key", workflow="shop")
    assert error.value.status == 403


def test_a_tenant_without_a_key_is_whoever_comes_without_one() -> None:
    assert DOOR.admit(authorization=None, workflow="open") == GUEST
    assert DOOR.admit(authorization="Bearer sk-anything", workflow="open") == GUEST


def test_a_workflow_without_tenants_is_open() -> None:
    assert DOOR.admit(authorization=None, workflow="unheard-of").name == ""


def test_a_wrong_key_is_not_taken_for_none_where_keys_are_known() -> None:
    door = Doorkeeper(tenants={"shop": (GOLD, Tenant(name="walk-in", workflow="shop"))}, keys=DOOR.keys)
    assert door.admit(authorization=None, workflow="shop").name == "walk-in"
    with pytest.raises(AuthError):
        door.admit(authorization="Bearer gold-kee", workflow="shop")


def test_a_plain_call_needs_a_key_as_soon_as_any_workflow_has_one() -> None:
    assert DOOR.admit(authorization="Bearer car-key") == OTHER
    with pytest.raises(AuthError):
        DOOR.admit(authorization=None)
    assert Doorkeeper(tenants={"open": (GUEST,)}).admit(authorization=None).name == ""


def test_no_key_can_be_read_from_the_doorkeeper() -> None:
    assert "gold-key" not in repr(DOOR)


def test_a_tenant_in_flight_is_bounded() -> None:
    limits = Limits()
    tenant = Tenant(name="t", workflow="w", max_in_flight=2)
    limits.enter(tenant, 0.0)
    with limits.running(tenant, 0.0):
        with pytest.raises(LimitError) as error:
            limits.enter(tenant, 0.0)
        assert error.value.reason == "TooManyInFlight"
    limits.enter(tenant, 0.0)
    limits.leave(tenant)
    limits.leave(tenant)
    assert limits.in_flight(tenant) == 0


def test_the_rate_of_a_tenant_is_bounded_and_refills_with_time() -> None:
    limits = Limits()
    tenant = Tenant(name="t", workflow="w", queries_per_minute=2)
    for _ in range(2):
        with limits.running(tenant, 0.0):
            pass
    with pytest.raises(LimitError) as error:
        limits.enter(tenant, 0.0)
    assert error.value.retry_after == pytest.approx(30)
    with limits.running(tenant, 31.0):
        pass
    with pytest.raises(LimitError):
        limits.enter(tenant, 30.0)


def test_one_tenant_does_not_spend_what_another_may() -> None:
    limits = Limits()
    first = Tenant(name="a", workflow="w", max_in_flight=1)
    limits.enter(first, 0.0)
    limits.enter(Tenant(name="b", workflow="w", max_in_flight=1), 0.0)
    limits.enter(Tenant(name="a", workflow="v", max_in_flight=1), 0.0)
