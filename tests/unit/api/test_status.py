"""A status is written without what has no value, and read whatever a newer operator has added."""

from hexflow_api import GPUPoolStatus, ParameterInForce, TextToSQLWorkflowStatus

SINCE = "2026-11-30T06:48:00Z"


def test_a_status_is_written_in_camel_case_without_what_has_no_value() -> None:
    assert GPUPoolStatus(observed_generation=2, ready_replicas=0, ready="0/2").as_written() == {
        "observedGeneration": 2,
        "readyReplicas": 0,
        "ready": "0/2",
    }


def test_a_parameter_in_force_says_where_it_is_from() -> None:
    alpha = ParameterInForce(value=0.4, source="Tuned", since=SINCE)
    written = TextToSQLWorkflowStatus(parameters={"alpha": alpha}, p95_seconds=12.5).as_written()
    assert written == {
        "parameters": {"alpha": {"value": 0.4, "source": "Tuned", "since": SINCE}},
        "p95Seconds": 12.5,
    }


def test_what_a_newer_operator_has_added_is_passed_over() -> None:
    status = TextToSQLWorkflowStatus.model_validate({"url": "http://r", "spentEuros": 3})
    assert status.as_written() == {"url": "http://r"}
