"""Builders of answers as a router gives them."""

from datetime import UTC, datetime
from typing import Any

from hexflow_router.answer import Answer, CallReport, CandidateReport, StageReport, Status, Tokens


def a_call_report(**given: Any) -> CallReport:
    """Return the report of a finished call."""
    usual: dict[str, Any] = {
        "id": "call-1",
        "task": "candidate",
        "instance": "a100-0",
        "pool": "a100",
        "gpu_type": "A100-80GB",
        "attempts": 1,
        "urgency": -3.0,
        "priority": 1000,
        "prompt_tokens": 2000,
        "output_tokens": 100,
        "cached_tokens": 1500,
        "token_source": "usage",
        "budget_seconds": 8.0,
        "queued_seconds": 1.0,
        "seconds": 4.0,
        "status": "Done",
    }
    return CallReport(**{**usual, **given})


def a_stage_report(*calls: CallReport, **given: Any) -> StageReport:
    """Return the report of a finished stage."""
    usual: dict[str, Any] = {
        "name": "candidate-generation",
        "kind": "CandidateGeneration",
        "status": "Done",
        "started_seconds": 0.0,
        "seconds": 6.0,
        "budget_seconds": 20.0,
        "calls": calls,
    }
    return StageReport(**{**usual, **given})


def an_answer(*stages: StageReport, **given: Any) -> Answer:
    """Return an answer in time with one row."""
    usual: dict[str, Any] = {
        "id": "query-1",
        "workflow": "shop-questions",
        "database": "shop",
        "question": "How many customers live in Berlin?",
        "status": Status.SUCCEEDED,
        "sql": "SELECT COUNT(*) AS customers FROM customers",
        "columns": ("customers",),
        "rows": ((7,),),
        "stages": stages,
        "candidates": (CandidateReport(sql="SELECT 1", votes=3, chosen=True),),
        "tokens": Tokens(prompt=2000, output=100),
        "deadline_seconds": 60.0,
        "seconds": 6.0,
        "deadline_met": True,
        "policy": "HexGenFlow",
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return Answer(**{**usual, **given})
