"""Admission: whether a question that comes now is let in, and with what share of its candidates.

The kernel says whether a query could be in time (``Kernel.admits``), the workflow's resource what follows from
that (``scheduling.admission``).
"""

from collections.abc import Callable

from hexflow_router.answer import Question
from hexflow_router.auth import Tenant
from hexflow_router.configuration import WorkflowSetup
from hexflow_router.errors import ApiError
from hexflow_scheduler import Admission, Call, estimate_tokens

Admits = Callable[[Call], Admission]
"""Say whether a query whose first call is this one could be in time: ``Kernel.admits`` now."""

LONGEST_OUTPUT = 4_096
"""Tokens that bound the expected output of a stage that says nothing."""


def admit_all(_: Call) -> Admission:
    """Let everything in."""
    return Admission(admitted=True, expected_seconds=0.0)


def first_call(
    workflow: WorkflowSetup, question: Question, tenant: Tenant, *, now: float, deadline_seconds: float
) -> Call:
    """Return a query's first call as far as it is known before its database is opened.

    Of its prompt only the question counts: the rest, the template and the schema, is as a rule in an engine's
    cache already, and a query let in by mistake is answered late where one kept out would not be at all.
    """
    setup = workflow.stages[0]
    return Call(
        call_id="admission",
        query_id="admission",
        workflow=workflow.name,
        tenant=tenant.name,
        tenant_weight=tenant.weight,
        stage=setup.stage.name,
        model=setup.model,
        pools=setup.pools,
        prompt_tokens=max(1, estimate_tokens(question.question + (question.evidence or ""))),
        max_tokens=setup.stage.max_tokens or LONGEST_OUTPUT,
        samples=setup.stage.samples or 1,
        query_arrival=now,
        deadline=now + deadline_seconds,
    )


def too_late(admission: Admission, deadline_seconds: float) -> ApiError:
    """Return the refusal of a query that would be late on every instance."""
    return ApiError(
        f"An answer is expected to take {admission.expected_seconds:.0f} seconds as busy as the engines are, and the"
        f" deadline is {deadline_seconds:g}: ask again in {admission.retry_after_seconds:.0f} seconds, or allow a"
        " longer `deadlineSeconds`.",
        status=429,
        code="deadline_unreachable",
        retry_after=admission.retry_after_seconds,
    )
