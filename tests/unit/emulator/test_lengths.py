"""Distributions of output lengths."""

from random import Random
from statistics import median

import pytest

from hexflow_emulator import EmulatorError, Lengths


def drawn(text: str, *, number: int = 4000) -> list[int]:
    random = Random(1)
    return [Lengths.parse(text).draw(random) for _ in range(number)]


def test_a_fixed_length_is_fixed() -> None:
    assert set(drawn("fixed:100", number=10)) == {100}


def test_a_uniform_length_takes_both_ends() -> None:
    assert set(drawn("uniform:3:5")) == {3, 4, 5}


def test_a_lognormal_length_has_its_median() -> None:
    assert median(drawn("lognormal:400:0.5")) == pytest.approx(400, rel=0.05)


def test_an_exponential_length_has_its_mean() -> None:
    lengths = drawn("exponential:300")
    assert sum(lengths) / len(lengths) == pytest.approx(300, rel=0.05)


def test_a_length_is_never_nothing() -> None:
    assert min(drawn("exponential:0.1")) == 1


@pytest.mark.parametrize(
    "text", ["", "fixed", "fixed:", "fixed:x", "fixed:-1", "fixed:nan", "fixed:1:2", "gauss:1:2", "uniform:1"]
)
def test_what_is_no_distribution_names_those_that_are(text: str) -> None:
    with pytest.raises(EmulatorError, match="write fixed:TOKENS"):
        Lengths.parse(text)
