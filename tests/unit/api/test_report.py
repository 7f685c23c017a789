from typing import Any

import pytest

from hexflow_api.report import Report, ReportedParameter, ReportedWorkflow, read_report


def test_a_report_is_read_as_it_was_answered() -> None:
    alpha = ReportedParameter(value=0.4, source="Tuned", since="2026-11-30T07:00:00Z")
    report = Report(workflows={"shop": ReportedWorkflow(p95_seconds=3.2, parameters={"alpha": alpha})})
    answer = report.as_answered()
    assert answer["workflows"]["shop"]["p95Seconds"] == 3.2
    assert "attainment" not in answer["workflows"]["shop"]
    assert read_report(answer) == report


def test_what_a_newer_router_has_added_is_passed_over() -> None:
    assert read_report({"later": 1, "workflows": {"shop": {"later": 1}}}) == Report(
        workflows={"shop": ReportedWorkflow()}
    )


@pytest.mark.parametrize("content", [None, [], "x", {"problems": 7}, {"pools": {"a": []}}])
def test_what_cannot_be_understood_is_no_report(content: Any) -> None:
    assert read_report(content) is None
