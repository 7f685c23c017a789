import json
from typing import Any

import pytest

from hexflow_cluster import (
    Busy,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Terminating,
    Unavailable,
)
from hexflow_cluster.errors import error_of


def a_status(message: str = "no", **fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "message": message, **fields}).encode()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Gone),
        (422, Invalid),
        (429, Busy),
        (500, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
        (418, ClusterError),
    ],
)
def test_each_status_becomes_the_error_that_a_caller_acts_on(status: int, kind: type[ClusterError]) -> None:
    error = error_of(status, a_status("as the API server says", reason="Word"))
    assert type(error) is kind
    assert (str(error), error.status, error.reason) == ("as the API server says", status, "Word")


def test_a_uid_that_is_another_ones_is_a_conflict_though_the_api_server_calls_it_invalid() -> None:
    body = a_status(details={"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]})
    assert isinstance(error_of(422, body), Conflict)


def test_a_field_that_does_not_exist_is_invalid_though_the_api_server_calls_it_its_own_fault() -> None:
    body = a_status(
        "failed to create typed patch object (default/d): .spec.bogus: field not declared in schema"
    )
    assert isinstance(error_of(500, body), Invalid)


def test_a_namespace_that_goes_away_has_an_error_of_its_own() -> None:
    body = a_status(details={"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]})
    assert isinstance(error_of(403, body), Terminating)


def test_the_pause_that_is_asked_for_is_read_from_the_header_and_from_the_body() -> None:
    assert error_of(429, b"", {"Retry-After": "7"}).retry_after == 7.0
    assert error_of(429, a_status(details={"retryAfterSeconds": 3})).retry_after == 3.0
    assert error_of(503, b"", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}).retry_after is None


def test_an_answer_that_is_no_status_object_still_says_something() -> None:
    assert str(error_of(502, b"bad gateway\n")) == "bad gateway"
    assert str(error_of(502, None)) == "the API server answered 502"
    assert str(error_of(500, b"[1]")) == "the API server answered 500"
