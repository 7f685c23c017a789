"""A passed-through call as the kernel gets to know it: counts, names and instants made from what its caller sent.

Pure: no clock, no connection. Trust ends here: what a tenant says may make its call less urgent, never more.
"""

from dataclasses import dataclass

from hexflow_router.auth import Tenant
from hexflow_router.body import BodyHead
from hexflow_router.catalogue import WorkflowTerms
from hexflow_router.hints import Hints
from hexflow_scheduler import Call, estimate_tokens

UNSTATED_OUTPUT = 4096
"""Bound on the output that is assumed where the caller states none, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Say who serves a model."""

    pools: frozenset[str]
    max_context: int = 0
    """Longest prompt plus output that an instance takes, in tokens; 0 where nobody says."""


def describe(
    *,
    call_id: str,
    model: str,
    head: BodyHead,
    hints: Hints,
    tenant: Tenant,
    terms: WorkflowTerms | None,
    offer: Offer,
    now: float,
    arrival: float,
) -> Call:
    """Return the call; ``arrival`` is that of its query, ``terms`` are those of the workflow it works for."""
    prompt_tokens = max(1, estimate_tokens(head.prompt_bytes().decode("utf-8", "replace")))
    limit = head.output_limit() or UNSTATED_OUTPUT
    if offer.max_context:
        # Our count of the prompt is an estimate: whether it fits is for the engine to say.
        prompt_tokens = min(prompt_tokens, offer.max_context - 1)
        limit = min(limit, offer.max_context - prompt_tokens)
    deadline = _deadline(hints, tenant, terms, now=now, arrival=arrival)
    budget = None if deadline is None else max(0.0, deadline - now)
    if hints.first_token_seconds is not None and not tenant.name:
        wanted = max(0.0, hints.first_token_seconds)
        budget = wanted if budget is None else min(wanted, budget)
    return Call(
        call_id=call_id,
        query_id=hints.query or call_id,
        workflow=hints.workflow or "",
        tenant=tenant.name or hints.fairness_id or "",
        tenant_weight=tenant.weight,
        stage=hints.stage or "",
        model=model,
        pools=(offer.pools & terms.pools) or offer.pools if terms else offer.pools,
        prompt_tokens=prompt_tokens,
        max_tokens=max(1, limit),
        samples=head.samples(),
        query_arrival=arrival,
        deadline=deadline,
        budget_seconds=budget,
    )


def _deadline(
    hints: Hints, tenant: Tenant, terms: WorkflowTerms | None, *, now: float, arrival: float
) -> float | None:
    stated = None if hints.deadline_seconds is None else now + hints.deadline_seconds
    if terms is None:
        return stated
    if not tenant.name:
        return stated if stated is not None else arrival + terms.deadline_of(hints.objective)
    granted = arrival + terms.deadline_of(tenant.slo_class)
    return granted if stated is None else max(stated, granted)
