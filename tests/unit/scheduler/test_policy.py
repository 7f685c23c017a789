import pytest

from hexflow_scheduler import InvalidParameter, Parameters, Policy, UnknownPolicy, policy_names


def test_the_default_does_least_harm() -> None:
    policy = Policy.named()
    assert (policy.dispatch, policy.queue, policy.name) == ("LeastHarm", "Deadline", "LeastHarm")


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("RoundRobin", ("RoundRobin", "FCFS")),
        ("LeastOutstanding", ("LeastOutstanding", "FCFS")),
        ("RoundRobin+Urgency", ("RoundRobin", "Urgency")),
        ("HexGenFlow+FCFS", ("HexGenFlow", "FCFS")),
    ],
)
def test_a_name_picks_a_pair(name: str, pair: tuple[str, str]) -> None:
    policy = Policy.named(name)
    assert (policy.dispatch, policy.queue) == pair
    assert policy.name == name


def test_a_pair_that_has_a_name_of_its_own_is_called_by_it() -> None:
    assert Policy.named("RoundRobin+FCFS").name == "RoundRobin"


def test_every_listed_name_is_a_policy() -> None:
    assert [name for name in policy_names() if Policy.named(name).name not in policy_names()] == []
    assert policy_names()[:4] == ("LeastHarm", "HexGenFlow", "HexGenFlowLiteral", "RoundRobin")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("HexgenFlow", "did you mean 'HexGenFlow'"),
        ("Magic", "no policy or dispatch rule is called 'Magic'; There are: LeastHarm, HexGenFlow"),
        ("RoundRobin+Urgent", "no queue rule is called 'Urgent'; did you mean 'Urgency'"),
        ("RoundRobin+", "no queue rule is called ''"),
    ],
)
def test_an_unknown_name_is_refused_with_those_there_are(name: str, message: str) -> None:
    with pytest.raises(UnknownPolicy) as refused:
        Policy.named(name)
    assert message in str(refused.value)


def test_parameters_have_bounds() -> None:
    with pytest.raises(InvalidParameter, match=r"alpha of HexGenFlow lies between 0 and 1, not -0\.1"):
        Policy.named("HexGenFlow", alpha=-0.1)
    with pytest.raises(InvalidParameter, match="beta of HexGenFlow lies between"):
        Policy.named("HexGenFlow", beta=float("nan"))
    with pytest.raises(InvalidParameter, match="exponent of LeastHarm lies between 1 and 8, not 0"):
        Policy.named(exponent=0)
    with pytest.raises(InvalidParameter, match="RoundRobin has no parameter 'alpha'; it has: none"):
        Policy.named("RoundRobin", alpha=0.5)
    with pytest.raises(InvalidParameter, match="park_seconds"):
        Policy.named(park_seconds=0.0)


def test_values_are_defaults_under_the_policy_s_under_overrides() -> None:
    policy = Policy.named("HexGenFlow", alpha=0.9)
    assert policy.values()["alpha"] == 0.9
    assert policy.values(Parameters(alpha=0.1))["alpha"] == 0.1
    assert policy.values()["beta"] == policy.declared[1].default


def test_parameters_are_equal_and_hash_by_value() -> None:
    assert Parameters(alpha=1, beta=2) == Parameters(beta=2.0, alpha=1.0)
    assert hash(Parameters(alpha=1, beta=2)) == hash(Parameters(beta=2.0, alpha=1.0))
    assert repr(Parameters(beta=2, alpha=0.5)) == "Parameters(alpha=0.5, beta=2.0)"
