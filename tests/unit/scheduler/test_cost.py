import pytest

from hexflow_scheduler import Profile, Speed
from hexflow_scheduler.cost import MeanSpeed

PROFILE = Profile(t0=0.02, t1=0.001, t2=1e-6, c1=1e-4, c2=1e-8, kv_tokens=100_000, slots=64)


def test_a_prompt_costs_its_tokens_and_their_depth() -> None:
    # 4,000 * (1e-4 + 1e-8 * 2,000) = 0.4 + 0.08
    assert Speed(PROFILE).prefill_seconds(4000) == pytest.approx(0.48)


def test_a_cached_prefix_is_free_but_makes_the_rest_deep() -> None:
    # 1,000 * (1e-4 + 1e-8 * 3,500) = 0.1 + 0.035
    assert Speed(PROFILE).prefill_seconds(4000, cached_tokens=3000) == pytest.approx(0.135)


def test_a_decoded_token_costs_a_step_of_the_whole_batch() -> None:
    # 200 * (0.02 + 8 * (0.001 + 1e-6 * 4,100)) = 200 * 0.0608
    assert Speed(PROFILE).decode_seconds(4000, 200, batch=8) == pytest.approx(12.16)


def test_what_was_learned_multiplies_prefill_and_decode_apart() -> None:
    speed = Speed(PROFILE, prefill=2.0, decode=0.5)
    # 2 * 0.48 + 0.5 * 200 * (0.02 + 0.001 + 1e-6 * 4,100)
    assert speed.call_seconds(4000, 200) == pytest.approx(0.96 + 2.51)


def test_the_quantum_is_the_shortest_step() -> None:
    assert Speed(PROFILE, decode=2.0).quantum == pytest.approx(0.042)


def test_a_mean_speed_takes_the_mean_of_what_its_speeds_take() -> None:
    other = Profile(t0=0.05, t1=0.0, t2=3e-6, c1=3e-4, c2=0.0, kv_tokens=1, slots=1)
    speeds = [Speed(PROFILE, prefill=2.0, decode=0.5), Speed(other, decode=3.0), Speed(other)]
    each = [speed.call_seconds(4000, 200) for speed in speeds]
    assert MeanSpeed(speeds).call_seconds(4000, 200) == pytest.approx(sum(each) / 3)
    assert MeanSpeed([]).call_seconds(4000, 200) == 0.0
