"""The built-in profiles: committed, fresh, and near the figures that they were fitted to."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

import hexflow_scheduler
from hexflow_api import Profile, builtin_profile, builtin_profiles, estimated_profile
from hexflow_api.profile import InlineProfile

ROOT = Path(__file__).parents[3]
CODER = "Qwen/Qwen2.5-Coder-32B-Instruct"


def speed(profile: Profile | None) -> hexflow_scheduler.Profile:
    assert profile is not None
    numbers = profile.coefficients()
    return hexflow_scheduler.Profile(
        t0=numbers["t0"],
        t1=numbers["t1"],
        t2=numbers["t2"],
        c1=numbers["c1"],
        c2=numbers["c2"],
        kv_tokens=int(numbers["kv_tokens"]),
        slots=int(numbers["slots"]),
    )


def test_the_committed_table_is_what_the_script_makes() -> None:
    done = subprocess.run([sys.executable, ROOT / "crds" / "fit_profiles.py", "--check"], check=False)
    assert done.returncode == 0, "stale: run make generate"


def rows(phase: str) -> list[dict[str, str]]:
    with (ROOT / "crds" / "gpu_profiles.csv").open(encoding="utf-8") as file:
        return [
            row for row in csv.DictReader(file) if row["phase"] == phase and row["tensor_parallel"] != "0"
        ]


def of(row: dict[str, str]) -> hexflow_scheduler.Profile:
    return speed(builtin_profile(row["gpu"], row["model"], int(row["tensor_parallel"])))


def test_decoding_comes_out_as_in_the_table() -> None:
    """Within a third for each row, a tenth at the median; computed rows times 1.15."""
    errors = []
    for row in rows("decode"):
        context, batch = int(row["prompt_or_context_tokens"]), int(row["batch"])
        told = float(row["milliseconds"]) / 1000 * (1 if row["source"].startswith("measured") else 1.15)
        profile = of(row)
        reckoned = profile.t0 + batch * (profile.t1 + profile.t2 * context)
        errors.append(abs(reckoned / told - 1))
    assert max(errors) < 0.34
    assert sorted(errors)[len(errors) // 2] < 0.1


def test_prefilling_comes_out_as_in_the_table() -> None:
    errors = [
        abs(
            of(row).prefill_seconds(int(row["prompt_or_context_tokens"])) * 1000 / float(row["milliseconds"])
            - 1
        )
        for row in rows("prefill")
    ]
    assert max(errors) < 0.2


def test_a_profile_is_found_by_any_name_of_its_gpu_and_model() -> None:
    found = builtin_profile("NVIDIA-A100-SXM4-80GB", CODER, 2)
    assert found is not None
    assert found.name == "a100-80gb-qwen2.5-32b-tp2"
    assert found == builtin_profile("a100", "qwen2.5-coder-32b", 2)


@pytest.mark.parametrize(
    ("gpu", "model", "parallel"),
    [("A100-80GB", CODER, 1), ("Voodoo2", CODER, 2), ("A100-80GB", "gpt-x", 2), ("L40S", CODER + "-AWQ", 4)],
)
def test_what_the_table_has_not_is_none(gpu: str, model: str, parallel: int) -> None:
    assert builtin_profile(gpu, model, parallel) is None


def test_an_a6000_is_an_a100_times_the_published_ratios() -> None:
    a100, a6000 = speed(builtin_profile("A100", CODER, 2)), speed(builtin_profile("A6000", CODER, 2))
    assert a6000.t0 / a100.t0 == pytest.approx(1.7, rel=0.01)
    assert a6000.c1 / a100.c1 == pytest.approx(2.2, rel=0.01)
    estimate = builtin_profile("A6000", CODER, 2)
    assert estimate is not None
    assert estimate.estimated


def test_every_row_has_a_source_and_room_for_a_long_prompt() -> None:
    for name, profile in builtin_profiles().items():
        assert profile.name == name
        assert profile.source
        assert profile.kv_tokens > 16_000
        assert profile.slots == 128


def test_an_estimate_from_data_sheets_is_within_a_factor_of_two_of_the_table() -> None:
    for profile in builtin_profiles().values():
        estimate = estimated_profile(profile.gpu, profile.model, profile.tensor_parallel)
        assert estimate is not None
        for length in (600, 4000, 12_000):
            known, reckoned = speed(profile), speed(estimate)
            assert 0.5 < reckoned.prefill_seconds(length) / known.prefill_seconds(length) < 2
            assert (
                0.5
                < reckoned.decode_seconds(length, 300, batch=8) / known.decode_seconds(length, 300, batch=8)
                < 2
            )


def test_what_does_not_fit_is_not_estimated() -> None:
    assert estimated_profile("L40S", CODER, 1) is None
    assert estimated_profile("L40S", CODER + "-AWQ", 1) is not None
    assert estimated_profile("Voodoo2", CODER, 1) is None
    assert estimated_profile("L40S", "gpt-x", 1) is None


def test_times_are_positive_numbers() -> None:
    good = {"t0": 0.02, "t1": 0, "t2": 0, "c1": 0, "c2": 0, "kvTokens": 1000}
    assert InlineProfile.model_validate(good).slots == 128
    for wrong in ({"t0": 0}, {"t1": -1}, {"c2": float("inf")}, {"kvTokens": 0.5}, {"slots": 0}):
        with pytest.raises(ValidationError):
            InlineProfile.model_validate(good | wrong)
