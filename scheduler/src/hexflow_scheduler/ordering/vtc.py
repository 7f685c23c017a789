"""VTC: the tenant that was served least goes next.

Source: Sheng et al., "Fairness in Serving Large Language Models" (arXiv 2401.00588, OSDI 2024),
algorithm 2 with the weights and the length prediction of its section 4; the authors' code is
``slora/server/router/vtc_req_queue.py`` and ``vtc_pred_len_req_queue.py`` of Ying1123/VTC-artifact. A
counter for each tenant grows by what it is served: a token of prompt counts 1, one of output 2, over its
weight. The tenant of the smallest counter goes next, its calls in order of arrival. One that comes back
after a while is lifted to the others, so that nobody saves up for a flood.

Where it differs: the authors count each token of output as it is decoded, which a router does not see; a
call is charged for its expected output when it is sent and the difference is settled when it ends. One
that failed or was cancelled stays charged. The counters are of the whole fleet, not of one engine.
"""

from collections.abc import Hashable, Iterable
from typing import ClassVar

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.call import Usage

PROMPT_TOKEN = 1.0
"""What a token of prompt counts (the paper's w_p)."""
OUTPUT_TOKEN = 2.0
"""What a token of output counts (the paper's w_q)."""


class VTC:
    """Order tenants by what they were served, and each tenant's calls by arrival."""

    name: ClassVar[str] = "VTC"

    def __init__(self) -> None:
        self._served: dict[str, float] = {}
        self._waiting: dict[str, set[str]] = {}
        """Ids of the calls that wait somewhere, of each tenant that has any."""
        self._left_last = ""
        """Tenant of the call that ceased to wait last."""
        self._charged: dict[str, float] = {}
        """What each call that runs was charged for its tokens."""

    def served(self, tenant: str) -> float:
        """Return a tenant's counter."""
        return self._served.get(tenant, 0.0)

    def key(self, active: ActiveCall, /) -> float:
        """Return the instant of arrival, and lift a tenant of which nothing waited."""
        tenant = active.call.tenant
        waiting = self._waiting.get(tenant)
        if waiting is None:
            others: Iterable[str] = self._waiting or (self._left_last,)
            self._served[tenant] = max(self.served(tenant), min(map(self.served, others)))
            waiting = self._waiting[tenant] = set()
        waiting.add(active.call.call_id)
        return active.released

    def group(self, active: ActiveCall, /) -> Hashable:
        """Return the tenant."""
        return active.call.tenant

    def place(self, now: float, head: ActiveCall, /) -> float:
        """Return the tenant's counter."""
        return self.served(head.call.tenant)

    def priority(self, active: ActiveCall, /) -> int | None:
        """Return None: an engine left alone serves in the order in which it was sent calls."""
        return None

    def sent(self, now: float, active: ActiveCall, /) -> None:
        """Charge the call's tenant for its prompt and its expected output."""
        call = active.call
        self._leave(active)
        cost = _cost(call.prompt_tokens, active.output_tokens * call.samples)
        self._charged[call.call_id] = cost
        self._served[call.tenant] = self.served(call.tenant) + cost / call.tenant_weight

    def ended(self, now: float, active: ActiveCall, usage: Usage | None, /) -> None:
        """Settle the difference to what the call really took."""
        call = active.call
        self._leave(active)
        charged = self._charged.pop(call.call_id, 0.0)
        if usage is not None:
            difference = _cost(usage.prompt_tokens, usage.output_tokens) - charged
            self._served[call.tenant] = self.served(call.tenant) + difference / call.tenant_weight

    def _leave(self, active: ActiveCall) -> None:
        waiting = self._waiting.get(active.call.tenant)
        if waiting is not None and active.call.call_id in waiting:
            waiting.remove(active.call.call_id)
            if not waiting:
                del self._waiting[active.call.tenant]
            self._left_last = active.call.tenant


def _cost(prompt_tokens: float, output_tokens: float) -> float:
    return PROMPT_TOKEN * prompt_tokens + OUTPUT_TOKEN * output_tokens
