import pytest

from hexflow_router.errors import ApiError
from hexflow_router.hints import Hints, read_hints, split_alias


def test_a_plain_call_says_nothing() -> None:
    assert read_hints({"content-type": "application/json"}, None) == Hints()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("qwen", ("qwen", None)),
        ("qwen@drafting", ("qwen", "drafting")),
        ("org/model@v2@drafting", ("org/model@v2", "drafting")),
        ("qwen@", ("qwen@", None)),
        ("@drafting", ("@drafting", None)),
    ],
)
def test_an_alias_is_a_model_and_a_stage(model: str, expected: tuple[str, str | None]) -> None:
    assert split_alias(model) == expected


def test_a_header_wins_over_metadata_and_metadata_over_the_alias() -> None:
    metadata = {
        "hexflow-stage": "second",
        "x-hexflow-workflow": "mine",
        "hexflow_deadline_ms": 1500,
        "other": ["x"],
    }
    assert read_hints({}, metadata, alias_stage="third").stage == "second"
    assert read_hints({"x-hexflow-stage": "first"}, metadata, alias_stage="third").stage == "first"
    assert read_hints({}, {}, alias_stage="third").stage == "third"
    assert read_hints({}, metadata).workflow == "mine"
    assert read_hints({}, metadata).deadline_seconds == 1.5


def test_the_words_of_gateways_are_understood() -> None:
    hints = read_hints(
        {
            "x-slo-ttft-ms": "250",
            "x-gateway-inference-objective": "gold",
            "x-llm-d-inference-fairness-id": "team-a",
        },
        None,
    )
    assert hints.first_token_seconds == 0.25
    assert hints.objective == "gold"
    assert hints.fairness_id == "team-a"


@pytest.mark.parametrize("value", ["soon", "nan", "inf", "1e400", "--1"])
def test_a_deadline_that_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_hints({"x-hexflow-deadline-ms": value}, None)
    assert (refused.value.status, refused.value.param) == (400, "x-hexflow-deadline-ms")


def test_a_query_may_be_late_already() -> None:
    assert read_hints({"x-hexflow-deadline-ms": "-200"}, None).deadline_seconds == -0.2


@pytest.mark.parametrize("name", ["a b", "x" * 129, "naïve", "a\tb"])
def test_names_are_bounded(name: str) -> None:
    with pytest.raises(ApiError):
        read_hints({"x-hexflow-stage": name}, None)
