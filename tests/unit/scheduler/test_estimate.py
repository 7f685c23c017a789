import json
from typing import Any

import pytest

from hexflow_scheduler import Call, Estimates, InvalidInput, PrefixBlock, Speed, estimate_tokens
from hexflow_scheduler.cost import MeanSpeed
from hexflow_scheduler.estimate import MOST_CLASSES, PRIOR_OUTPUT_TOKENS, PRIOR_PROMPT_TOKENS
from support.calls import FAST, SLOW, a_call, an_instance, usage

PLAIN: dict[str, Any] = {"workflow": "w", "stage": "draft", "max_tokens": 10_000}


def after(*lengths: int, **changes: Any) -> Estimates:
    estimates = Estimates()
    for length in lengths:
        estimates.finished(a_call(**{**PLAIN, **changes}), usage(length))
    return estimates


def test_a_call_of_which_nothing_is_known_gets_the_prior() -> None:
    assert Estimates().output_tokens(a_call(**PLAIN)) == PRIOR_OUTPUT_TOKENS
    assert Estimates().prompt_tokens("w", "draft", "m") == PRIOR_PROMPT_TOKENS


def test_the_expected_output_is_the_mean_of_its_class() -> None:
    estimates = after(100, 200, 900)
    assert estimates.output_tokens(a_call(**PLAIN)) == pytest.approx(400, rel=0.026)


def test_calls_of_a_stage_that_begin_with_different_templates_have_lengths_of_their_own() -> None:
    def like(template: str, **changes: Any) -> Call:
        prefix = (PrefixBlock(key=template, tokens=100), PrefixBlock(key=f"{template}/schema", tokens=50))
        return a_call(**{**PLAIN, "prefix": prefix, **changes})

    estimates = Estimates()
    for template, tokens in (("steps", 700), ("plan", 400)) * 4:
        estimates.finished(like(template), usage(tokens))
    assert estimates.output_tokens(like("steps")) == pytest.approx(700, rel=0.026)
    assert estimates.output_tokens(like("plan")) == pytest.approx(400, rel=0.026)
    for unknown in (like("new"), a_call(**PLAIN), like("steps", model="other")):
        assert estimates.output_tokens(unknown) == pytest.approx(550, rel=0.026)
    restored = Estimates.from_data(json.loads(json.dumps(estimates.to_data())))
    assert restored.output_tokens(like("steps")) == estimates.output_tokens(like("steps"))


def test_the_expected_output_is_never_more_than_the_call_allows() -> None:
    assert after(500, 500, 500).output_tokens(a_call(**{**PLAIN, "max_tokens": 64})) == 64


def test_samples_share_the_output_of_their_request() -> None:
    estimates = after(800, 800, 800, samples=4)
    assert estimates.output_tokens(a_call(**PLAIN)) == pytest.approx(200, rel=0.026)


def test_an_unknown_class_falls_back_to_its_stage_and_then_to_all() -> None:
    estimates = after(200, 200, 200)
    same_stage = a_call(workflow="other", stage="draft", model="other", max_tokens=10_000)
    no_stage = a_call(max_tokens=10_000)
    for _ in range(4):
        estimates.finished(a_call(workflow="w", stage="long"), usage(1000))
    assert estimates.output_tokens(same_stage) == pytest.approx(200, rel=0.026)
    assert estimates.output_tokens(no_stage) == pytest.approx(4600 / 7, rel=0.026)


def test_two_observations_are_not_enough() -> None:
    assert after(100, 100).output_tokens(a_call(**PLAIN)) == PRIOR_OUTPUT_TOKENS


def test_rounds_are_the_mean_length_of_a_chain() -> None:
    estimates = Estimates()
    # Four chains: two of one call, one of two, one of three.
    for rank in (0, 0, 0, 0, 1, 1, 2):
        estimates.arrived(a_call(workflow="w", stage="fix", round=rank))
    assert estimates.rounds("w", "fix") == 7 / 4
    assert estimates.rounds("w", "never-seen") == 1.0


def test_old_rounds_fade() -> None:
    estimates = Estimates()
    for rank in (0, 1):
        for _ in range(2000):
            estimates.arrived(a_call(stage="fix", round=rank))
    for _ in range(6001):
        estimates.arrived(a_call(stage="fix"))
    assert estimates.rounds("", "fix") < 1.2


def test_a_stage_costs_its_rounds_times_the_mean_call_over_the_fleet() -> None:
    estimates = Estimates()
    for rank in (0, 1):
        estimates.arrived(a_call(**PLAIN, round=rank))
    for _ in range(3):
        estimates.finished(a_call(**PLAIN), usage(100))
    seconds = estimates.stage_seconds("w", "draft", "coder", MeanSpeed([Speed(FAST), Speed(SLOW)]))
    # (3 s + 6 s) / 2, twice; lengths are known within 2.5 %
    assert seconds == pytest.approx(9.0, rel=0.026)
    assert estimates.stage_seconds("w", "draft", "coder", MeanSpeed([])) == 0.0


def test_a_speed_factor_moves_by_a_tenth_of_the_ratio_s_logarithm() -> None:
    estimates = Estimates()
    estimates.timed("a", prefill=None, decode=2.0)
    estimates.timed("a", prefill=0.5, decode=2.0)
    assert estimates.scales("a") == pytest.approx((0.5**0.1, 2**0.2))
    assert estimates.speed(an_instance("a")) == Speed(FAST, *estimates.scales("a"))
    assert estimates.scales("b") == (1.0, 1.0)


def test_a_speed_factor_stays_within_its_bounds() -> None:
    estimates = Estimates()
    for _ in range(200):
        estimates.timed("a", prefill=4.0, decode=0.25)
    assert estimates.scales("a") == (10.0, 0.1)


def test_names_from_callers_cannot_fill_the_memory() -> None:
    estimates = Estimates()
    for number in range(MOST_CLASSES + 50):
        call = a_call(workflow=f"w{number}", stage=f"s{number}")
        estimates.arrived(call)
        estimates.finished(call, usage())
    data = estimates.to_data()
    assert len(data["lengths"]) <= MOST_CLASSES
    assert len(data["rounds"]) <= MOST_CLASSES
    assert estimates.output_tokens(a_call(workflow="w-last", max_tokens=10_000)) == pytest.approx(
        100, rel=0.026
    )


def test_names_from_callers_cannot_keep_others_from_being_learned() -> None:
    estimates = Estimates()
    for number in range(MOST_CLASSES + 50):
        estimates.finished(a_call(workflow=f"w{number}", stage=f"s{number}"), usage(900))
    for _ in range(3):
        estimates.arrived(a_call(**PLAIN, round=1))
        estimates.finished(a_call(**PLAIN), usage(100))
    assert estimates.output_tokens(a_call(**PLAIN)) == pytest.approx(100, rel=0.026)
    for number in range(MOST_CLASSES // 4):
        estimates.finished(a_call(workflow=f"x{number}", stage=f"x{number}"), usage(900))
        estimates.finished(a_call(**PLAIN), usage(100))
    assert estimates.output_tokens(a_call(**PLAIN)) == pytest.approx(100, rel=0.026)


def test_saved_as_json_and_restored_it_predicts_the_same() -> None:
    estimates = after(100, 200, 300, 400)
    estimates.arrived(a_call(**PLAIN, round=1))
    estimates.timed("a", prefill=2.0, decode=3.0)
    restored = Estimates.from_data(json.loads(json.dumps(estimates.to_data())))
    assert restored.to_data() == estimates.to_data()
    assert restored.output_tokens(a_call(**PLAIN)) == estimates.output_tokens(a_call(**PLAIN))


@pytest.mark.parametrize(
    "data", [{}, {"version": 99}, {"version": 1, "lengths": [{}]}, {"version": 1, "lengths": 7}]
)
def test_anything_else_is_refused_as_saved_estimates(data: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="drop them"):
        Estimates.from_data(data)


def test_tokens_are_estimated_from_bytes() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("SELECT name FROM customers WHERE city = 'Berlin'") == 14
    assert estimate_tokens("a\ud800") == 1  # half a surrogate pair, as broken clients send it
