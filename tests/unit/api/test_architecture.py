"""A model's shape is found by its name."""

import pytest

from hexflow_api.architecture import architecture_of


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2.5-32b"),
        ("Qwen2.5-Coder-7B", "qwen2.5-7b"),
        ("Qwen/Qwen2.5-1.5B-Instruct", "qwen2.5-1.5b"),
        ("seeklhy/OmniSQL-14B", "qwen2.5-14b"),
        ("Snowflake/Arctic-Text2SQL-R1-7B", "qwen2.5-7b"),
        ("XGenerationLab/XiYanSQL-QwenCoder-32B-2504", "qwen2.5-32b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b"),
        ("Meta-Llama-3.1-8B", "llama-3.1-8b"),
        ("Qwen/Qwen2.5-Coder-32B-Instruct-AWQ", "qwen2.5-32b-4bit"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8", "llama-3.1-70b-8bit"),
        ("deepseek-ai/deepseek-coder-33b-instruct", "size-33b"),
        ("mistral_13b", "size-13b"),
        ("gpt-4o", None),
        ("text-embedding-3-small", None),
    ],
)
def test_a_model_is_found_by_family_and_size(model: str, name: str | None) -> None:
    found = architecture_of(model)
    assert (found.name if found else None) == name


def test_quantised_weights_are_smaller() -> None:
    full, small = architecture_of("Qwen2.5-32B"), architecture_of("Qwen2.5-32B-AWQ")
    assert full is not None
    assert small is not None
    assert full.weight_bytes == pytest.approx(65.6e9)
    assert small.weight_bytes == pytest.approx(18.45e9)
    assert small.kv_bytes_per_token == full.kv_bytes_per_token == 262_144
