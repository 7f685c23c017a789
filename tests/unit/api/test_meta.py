"""Selectors select as Kubernetes' do."""

from typing import Any

import pytest

from hexflow_api import LabelSelector

LABELS = {"app": "vllm", "tier": "gold"}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"app": "vllm"}}, True),
        ({"matchLabels": {"app": "vllm", "tier": "tin"}}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold", "tin"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
        (
            {"matchLabels": {"app": "vllm"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]},
            False,
        ),
    ],
)
def test_a_selector_selects_what_has_all_it_says(selector: dict[str, Any], selected: bool) -> None:
    assert LabelSelector.model_validate(selector).matches(LABELS) is selected
