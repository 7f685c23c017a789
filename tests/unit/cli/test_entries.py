"""Policies are named on a command line as everywhere, with parameters if need be."""

import pytest

from hexflow_cli.entries import ALL, USUAL, entries_named
from hexflow_cli.exitcode import CommandError, ExitCode


def test_a_few_usual_ones_are_compared_where_nobody_says_what() -> None:
    assert tuple(entry.policy for entry in entries_named(())) == USUAL


def test_all_stands_for_every_baseline_and_ours_each_once() -> None:
    names = [entry.policy for entry in entries_named(["RoundRobin", "all"])]
    assert sorted(names) == sorted(ALL)
    assert names[0] == "RoundRobin"


def test_parameters_follow_a_colon() -> None:
    (entry,) = entries_named(["HexGenFlow+FCFS: alpha = 0.3,beta=2"])
    assert (entry.policy, entry.parameters) == ("HexGenFlow+FCFS", (("alpha", 0.3), ("beta", 2.0)))


def test_the_same_policy_with_other_parameters_is_another() -> None:
    assert len(entries_named(["HexGenFlow:alpha=0.3", "HexGenFlow:alpha=0.7", "HexGenFlow:alpha=0.3"])) == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("LeastHram", "did you mean 'LeastHarm'"),
        ("RoundRobin+Urgent", "did you mean 'Urgency'"),
        ("Nothing", "There are: LeastHarm"),
        ("", "There are: LeastHarm"),
        ("HexGenFlow:gamma=1", "no parameter 'gamma'; it has: alpha, beta"),
        ("HexGenFlow:self=1", "no parameter 'self'"),
        ("HexGenFlow:alpha=7", "between 0 and 1"),
        ("HexGenFlow:alpha=nan", "between 0 and 1"),
        ("HexGenFlow:alpha", "alpha=0.3"),
        ("HexGenFlow:alpha=much", "alpha=0.3"),
        ("HexGenFlow:", "alpha=0.3"),
    ],
)
def test_what_cannot_be_is_told_in_one_paragraph_with_what_there_is(name: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        entries_named([name])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.code == ExitCode.USAGE
