"""The command line: vLLM's arguments taken, our own read, mistakes told in one sentence."""

import json
from pathlib import Path

import pytest

from hexflow_api import builtin_profile
from hexflow_emulator import EmulatorError, EmulatorOptions, Fault, parse
from hexflow_emulator.arguments import amount
from hexflow_simulator import EngineOrder
from support.emulation import PROFILE

MODEL = "Qwen/Qwen2.5-Coder-32B-Instruct"
INLINE = json.dumps(
    {"t0": 0.02, "t1": 0.001, "t2": 1e-7, "c1": 1e-4, "c2": 0, "kvTokens": 100000, "slots": 4}
)


def read(*words: str, **environment: str) -> EmulatorOptions:
    return parse(["serve", "tiny", "--profile", INLINE, *words], environment=environment)


def test_a_pods_command_line_is_taken_as_it_is() -> None:
    options = parse(
        [
            "serve", MODEL, "--host", "0.0.0.0", "--port", "8000", "--served-model-name", "coder", MODEL,
            "--tensor-parallel-size", "2", "--max-model-len", "16k", "--max-num-seqs", "64", "--scheduling-policy",
            "priority", "--enable-prefix-caching", "--gpu-memory-utilization", "0.9", "--dtype=bfloat16",
            "--enable-prompt-tokens-details", "--shutdown-timeout", "30", "--gpu", "A100-80GB", "--no-enable-log-requests",
        ],
        environment={},
    )  # fmt: skip
    assert (options.model, options.names) == (MODEL, ("coder", MODEL))
    assert (options.max_model_len, options.profile.slots) == (16_000, 64)
    assert options.engine.order is EngineOrder.PRIORITY
    assert options.prompt_details
    assert options.shutdown_timeout == 30
    assert [warning.split()[0] for warning in options.warnings] == [
        "--gpu-memory-utilization", "--dtype=bfloat16", "--no-enable-log-requests",
    ]  # fmt: skip


def test_the_speed_is_the_gpus_built_in_profile() -> None:
    options = parse(["serve", MODEL, "--gpu", "A100-80GB", "-tp", "2"], environment={})
    profile = builtin_profile("A100-80GB", MODEL, 2)
    assert profile is not None
    assert (options.profile.t0, options.profile.kv_tokens) == (profile.t0, profile.kv_tokens)


def test_a_profile_is_read_from_a_file_or_by_name(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(INLINE)
    assert parse(["serve", "m", "--profile", str(path)], environment={}).profile == PROFILE
    named = parse(["serve", "m", "--profile", "l40s-qwen2.5-32b-tp4"], environment={})
    assert named.profile.t0 > 0


def test_underscores_are_dashes_as_in_vllm() -> None:
    assert read("--max_num_seqs=9").profile.slots == 9


def test_prefix_caching_is_on_unless_told() -> None:
    assert read().engine.keep_prefixes
    assert not read("--no-enable-prefix-caching").engine.keep_prefixes


def test_the_context_is_no_longer_than_the_cache() -> None:
    assert read("--max-model-len", "50000", "--kv-tokens", "20000").context == 20_000
    assert read("--kv-cache-memory-bytes", "1G", "--kv-bytes-per-token", "256K").profile.kv_tokens == 4096
    assert read("--max-model-len", "auto").context == 32_768


def test_own_options_may_come_from_the_environment_and_the_command_line_wins() -> None:
    options = read(HEXFLOW_EMULATOR_TIME_SCALE="4", HEXFLOW_EMULATOR_FAULT="error:1 slow:2")
    assert options.time_scale == 4
    assert options.faults == (Fault.parse("error:1"), Fault.parse("slow:2"))
    assert read("--time-scale", "8", HEXFLOW_EMULATOR_TIME_SCALE="4").time_scale == 8


def test_vllms_key_may_come_from_the_environment() -> None:
    assert read(VLLM_API_KEY="k").api_key == "k"
    assert read("--api-key", "mine", VLLM_API_KEY="k").api_key == "mine"


def test_without_a_gpu_it_says_whose_time_it_keeps() -> None:
    (warning,) = parse(["serve", MODEL, "-tp", "2"], environment={}).warnings
    assert "A100-80GB" in warning


@pytest.mark.parametrize(
    ("text", "number"),
    [("4096", 4096), ("32k", 32_000), ("32K", 32_768), ("64M", 67_108_864), ("1.5k", 1500), ("2GiB", 2**31)],
)
def test_amounts_are_read_as_vllm_reads_them(text: str, number: int) -> None:
    assert amount(text) == number


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: command"),
        (["serve"], "no model was named"),
        (["bench"], "invalid choice: 'bench'"),
        (["serve", "m", "--port", "x"], "invalid int value: 'x'"),
        (["serve", "m", "--scheduling-policy", "lifo"], "invalid choice: 'lifo'"),
        (["serve", "m", "--time-scale", "0", "--profile", INLINE], "--time-scale 0 must be more than 0"),
        (["serve", "m", "--max-model-len", "long", "--profile", INLINE], "'long' is no amount"),
        (["serve", "m", "--max-num-seqs", "0", "--profile", INLINE], "at least one slot"),
        (["serve", "m", "--block-size", "0", "--profile", INLINE], "--block-size"),
        (
            ["serve", "m", "--book", "b", "--output-tokens", "fixed:1", "--profile", INLINE],
            "exclude each other",
        ),
        (["serve", "m", "--output-tokens", "fixed", "--profile", INLINE], "no distribution of lengths"),
        (["serve", "m", "--fault", "x:1", "--profile", INLINE], "there is no fault 'x'"),
        (["serve", MODEL, "--gpu", "Abacus"], "nothing is known of the speed of .* on 1 x Abacus"),
        (["serve", MODEL, "--gpu", "L40S", "-tp", "1"], "does not fit there"),
        (["serve", "m", "--profile", "missing.json"], "cannot read the profile missing.json"),
        (["serve", "m", "--profile", "{"], "Invalid JSON"),
        (
            ["serve", "m", "--profile", '{"t0": -1, "t1": true}'],
            "t0: Input should be greater than 0; t1: Input should be a valid number; t2: Field required",
        ),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], message: str) -> None:
    with pytest.raises(EmulatorError, match=message):
        parse(words, environment={})
