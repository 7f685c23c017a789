"""The names in resources are the kernel's names."""

import hexflow_scheduler.policy as kernel
from hexflow_api.policy import DEFAULT_POLICY, DISPATCH_RULES, PARAMETERS, POLICIES, QUEUE_RULES


def test_resources_name_exactly_the_policies_of_the_kernel() -> None:
    assert set(DISPATCH_RULES) == set(kernel.DISPATCH_RULES)
    assert set(QUEUE_RULES) == set(kernel.QUEUE_RULES)
    assert set(POLICIES) == set(kernel.policy_names())
    assert DEFAULT_POLICY == kernel.DEFAULT_POLICY


def test_a_name_means_the_same_pair_in_a_resource_and_in_the_kernel() -> None:
    for name, pair in POLICIES.items():
        policy = kernel.Policy.named(name)
        assert pair == (policy.dispatch, policy.queue)


def test_parameters_have_the_bounds_of_the_kernel() -> None:
    declared = {
        name: {each.name: (each.low, each.high) for each in rule.parameters}
        for name, rule in kernel.DISPATCH_RULES.items()
        if rule.parameters
    }
    assert declared == PARAMETERS
