import pytest

from hexflow_api import POLICIES
from hexflow_cli.demo import in_words


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_that_the_demo_takes_is_told_in_words(policy: str) -> None:
    assert "each call to" in in_words(policy)
    assert "first" in in_words(policy)
