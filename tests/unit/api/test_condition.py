"""Conditions are Kubernetes' own in form, and every reason is a word with a sentence."""

import re

import pytest
from pydantic import ValidationError

from hexflow_api import Condition, ConditionType, Reason
from hexflow_api.condition import CONDITION_TYPE, REASON

SINCE = "2026-11-30T06:48:00Z"


def test_every_reason_is_a_word_with_a_sentence() -> None:
    for reason in (*Reason, *ConditionType):
        assert re.fullmatch(REASON, reason)
        assert reason.sentence.endswith(".")
        assert reason.sentence[0].isupper()
    assert len({reason.sentence for reason in Reason}) == len(Reason)


def test_a_reason_is_found_by_its_word() -> None:
    assert Reason("PoolNotFound") is Reason.POOL_NOT_FOUND
    assert f"{Reason.POOL_NOT_FOUND}" == "PoolNotFound"


def test_a_condition_is_written_as_kubernetes_writes_one() -> None:
    condition = Condition(
        type=ConditionType.READY,
        status="False",
        reason=Reason.POOL_NOT_FOUND,
        message="there is no GPUPool 'a10' here",
        last_transition_time=SINCE,
        observed_generation=3,
    )
    assert condition.model_dump(mode="json", by_alias=True) == {
        "type": "Ready",
        "status": "False",
        "reason": "PoolNotFound",
        "message": "there is no GPUPool 'a10' here",
        "lastTransitionTime": SINCE,
        "observedGeneration": 3,
    }


def test_what_a_newer_version_says_is_read_as_far_as_it_is_known() -> None:
    data = {
        "type": "Newer",
        "status": "True",
        "reason": "Newer",
        "message": "",
        "lastTransitionTime": SINCE,
        "severity": "None",
    }
    assert Condition.model_validate(data).reason == "Newer"


@pytest.mark.parametrize(("field", "value"), [("type", "not ready"), ("reason", ""), ("status", "Maybe")])
def test_a_condition_that_kubernetes_refuses_is_refused(field: str, value: str) -> None:
    data = {
        "type": "Ready",
        "status": "True",
        "reason": "Serving",
        "message": "",
        "lastTransitionTime": SINCE,
    }
    with pytest.raises(ValidationError, match=field):
        Condition.model_validate(data | {field: value})
    assert re.fullmatch(CONDITION_TYPE, "Ready")
