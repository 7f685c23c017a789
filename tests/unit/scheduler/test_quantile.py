from random import Random

import pytest

from hexflow_scheduler.quantile import MEMORY, Quantiles


def test_nothing_observed_is_zero() -> None:
    assert (Quantiles().quantile(0.5), Quantiles().mean()) == (0.0, 0.0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_quantile_is_within_two_and_a_half_per_cent(share: float) -> None:
    random, quantiles = Random(7), Quantiles()
    values = sorted(random.lognormvariate(6.0, 0.7) for _ in range(1500))
    for value in random.sample(values, len(values)):
        quantiles.observe(value)
    assert quantiles.quantile(share) == pytest.approx(values[int(share * len(values))], rel=0.026)


def test_values_below_one_have_a_bucket_of_their_own() -> None:
    quantiles = Quantiles()
    quantiles.observe(0.0)
    assert quantiles.quantile(0.5) == 0.5


def test_old_observations_fade_and_memory_stays_bounded() -> None:
    quantiles = Quantiles()
    for value in (100.0, 400.0):
        for _ in range(int(1.5 * MEMORY)):
            quantiles.observe(value)
    assert quantiles.quantile(0.5) == pytest.approx(400.0, rel=0.026)
    assert quantiles.count <= MEMORY


def test_saved_and_restored_it_goes_on_as_before() -> None:
    random, quantiles = Random(3), Quantiles()
    for _ in range(300):
        quantiles.observe(random.expovariate(0.01))
    restored = Quantiles.from_data(quantiles.to_data())
    for each in (quantiles, restored):
        each.observe(50.0)
    assert restored.to_data() == quantiles.to_data()
    assert restored.quantile(0.7) == quantiles.quantile(0.7)
