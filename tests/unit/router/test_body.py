import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexflow_router.body import read_head, with_model, with_priority
from hexflow_router.errors import ApiError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def test_a_body_that_needs_no_change_keeps_every_byte() -> None:
    body = b' {"model" : "a" , "x":1.10, "x":2}\n'
    assert with_priority(body, None) is body


def test_only_the_field_that_changes_changes() -> None:
    body = b'{"messages": [ {"content":"\\u00e9"} ],"temperature": 1.0e+0,"priority":5,"model":"a@b"}'
    changed = with_priority(with_model(body, "a"), -3)
    assert b'[ {"content":"\\u00e9"} ]' in changed
    assert b"1.0e+0" in changed
    assert json.loads(changed) == {**json.loads(body), "model": "a", "priority": -3}


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_every_other_field_means_the_same_after_a_change(fields: dict[str, object]) -> None:
    body = json.dumps(fields).encode()
    assert json.loads(with_priority(body, 7)) == {**fields, "priority": 7}


@pytest.mark.parametrize("name", ["priority", "prio\\u0072ity"])
def test_what_a_caller_says_of_its_priority_reaches_no_engine(name: str) -> None:
    body = f'{{"{name}": -99, "temperature": 1.0e+0}}'.encode()
    assert with_priority(body, None) == b'{"temperature":1.0e+0}'
    assert json.loads(with_priority(body, 5)) == {"priority": 5, "temperature": 1.0}


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (b"{}", None),
        (b'{"max_tokens": 5}', 5),
        (b'{"max_tokens": 5, "max_completion_tokens": 7}', 7),
        (b'{"max_tokens": null}', None),
        (b'{"max_tokens": true}', None),
        (b'{"max_tokens": -1}', None),
        (b'{"max_tokens": "many"}', None),
    ],
)
def test_the_bound_on_the_output_is_read_from_either_field(body: bytes, limit: int | None) -> None:
    assert read_head(body).output_limit() == limit


@pytest.mark.parametrize(
    ("body", "stream"), [(b"{}", False), (b'{"stream":true}', True), (b'{"stream":"yes"}', False)]
)
def test_a_stream_is_asked_for_by_true_alone(body: bytes, stream: bool) -> None:
    assert read_head(body).wants_stream() is stream


def test_the_number_of_samples_is_bounded() -> None:
    assert read_head(b'{"n": 4}').samples() == 4
    assert read_head(b'{"n": 100000}').samples() == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"nothing", "invalid_json"),
        (b"[]", "invalid_json"),
        (b'{"a":"\xff"}', "invalid_utf8"),
    ],
)
def test_what_is_no_json_object_in_utf8_is_refused(body: bytes, code: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_head(body)
    assert (refused.value.status, refused.value.code) == (400, code)


def test_a_number_out_of_range_is_named_and_the_object_not_blamed() -> None:
    with pytest.raises(ApiError, match="not valid JSON: Number out of range"):
        read_head(b'{"n": 1e400}')
