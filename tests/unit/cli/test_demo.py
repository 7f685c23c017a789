from hexflow_api import POLICIES
from hexflow_cli.demo import in_words


def test_every_policy_that_the_demo_takes_is_told_in_words() -> None:
    told = {policy: in_words(policy) for policy in POLICIES}
    assert [policy for policy, words in told.items() if "each call to" not in words] == []
    assert [policy for policy, words in told.items() if "first" not in words] == []
