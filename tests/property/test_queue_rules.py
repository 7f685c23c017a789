"""Each queue, whatever its rule, orders as sorting everything again at every step would.

The naive side keeps its own books of what was told and done, and looks at every waiting call each time.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from math import exp, floor, inf, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.ordering import Watcher
from hexflow_scheduler.policy import QUEUE_RULES
from hexflow_scheduler.queue import queue_for
from support.calls import a_call, an_active_call, usage

WEIGHTS = {"a": 1.0, "b": 2.0, "c": 4.0}
SECONDS = st.integers(1, 400).map(lambda eighths: eighths / 8)


@dataclass(frozen=True, slots=True)
class Begun:
    """Remember a query as it was when one of its calls was released: its longest path so far."""

    served: float = 0.0
    waited: float = 0.0
    alone: float = 0.0


@dataclass
class Books:
    """Keep what the definitions of the rules speak of."""

    tokens: dict[str, float] = field(default_factory=lambda: dict.fromkeys([*WEIGHTS, ""], 0.0))
    """Weighted tokens that each tenant was served."""
    left_last: str = ""
    """Tenant of the call that ceased to wait last."""
    queries: dict[str, list[Begun]] = field(default_factory=dict)
    """A path for each answered call of a query."""
    begun: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    units: dict[float, float] = field(default_factory=dict)
    """The number from which the levels of each ratio are counted: the first that was seen."""

    def level(self, number: float, ratio: float) -> int:
        return floor(round(log(number / self.units.setdefault(ratio, number)) / log(ratio), 9))

    def join(self, active: ActiveCall, waiting: Iterable[ActiveCall]) -> None:
        tenants = {each.call.tenant for each in waiting}
        tenant = active.call.tenant
        if tenant not in tenants:
            lift = min(self.tokens[other] for other in tenants or {self.left_last})
            self.tokens[tenant] = max(self.tokens[tenant], lift)
        paths = self.queries.get(active.call.query_id, [])
        served, waited = max(((path.served, path.waited) for path in paths), default=(0.0, 0.0))
        alone = max((path.alone for path in paths), default=0.0)
        self.begun.setdefault(active.call.call_id, (served, waited, alone))

    def answer(self, active: ActiveCall, now: float) -> None:
        assert active.sent is not None
        served, waited, alone = self.begun[active.call.call_id]
        path = Begun(
            served + now - active.sent, waited + active.sent - active.released, alone + active.alone_seconds
        )
        self.queries.setdefault(active.call.query_id, []).append(path)


def naive_order(rule: str, books: Books, now: float, waiting: list[ActiveCall]) -> list[ActiveCall]:
    """Return the waiting calls of one instance as the rule's definition orders them now."""

    def by(place: Callable[[ActiveCall], float]) -> list[ActiveCall]:
        return sorted(waiting, key=lambda each: (place(each), each.order))

    def by_group(
        group: Callable[[ActiveCall], Hashable], place: Callable[[ActiveCall], float]
    ) -> list[ActiveCall]:
        order: list[ActiveCall] = []
        while left := [each for each in waiting if each not in order]:
            heads = {
                group(each): each for each in sorted(left, key=lambda each: (-each.released, -each.order))
            }
            order.append(min(heads.values(), key=lambda head: (place(head), head.released, head.order)))
        return order

    def due(each: ActiveCall) -> float:
        return each.query.arrival + each.query.slo_seconds

    def attained(each: ActiveCall) -> float:
        served = books.begun[each.call.call_id][0]
        return books.level(served, 2.0) if served > 0 else -inf

    def attained_or_starving(each: ActiveCall) -> float:
        served, waited, _ = books.begun[each.call.call_id]
        starving = served > 0 and round((waited + now - each.released) / served, 6) >= 4
        return -inf if starving else attained(each)

    def ratio(each: ActiveCall) -> float:
        horizon = books.begun[each.call.call_id][2] + each.alone_seconds
        rounded = books.units[1.1] * exp(books.level(horizon, 1.1) * log(1.1))
        return round((now - each.query.arrival + each.predicted_seconds) / rounded, 6)

    match rule:
        case "FCFS":
            return by(lambda each: each.released)
        case "Urgency":
            return by(lambda each: -(each.alone_seconds - ((each.allowed or 0) - (now - each.released))))
        case "Deadline":
            return by(lambda each: due(each) - now)
        case "LatestStart":
            return by(lambda each: due(each) - now - each.rest_seconds - each.alone_seconds)
        case "LeastLaxity":
            return by(lambda each: due(each) - now - each.alone_seconds)
        case "VTC":
            return by_group(lambda each: each.call.tenant, lambda each: books.tokens[each.call.tenant])
        case "QLM":
            return by_group(lambda each: books.level(each.query.slo_seconds, 1.25), due)
        case "LeastAttained":
            return by_group(attained, attained_or_starving)
        case "ProjectedRatio":
            order = by(lambda each: each.query.arrival - each.predicted_seconds)
            return sorted(order, key=lambda each: -ratio(each))
    raise AssertionError(f"{rule} has no naive order here: add one")


@pytest.mark.parametrize("name", QUEUE_RULES)
@given(data=st.data())
@settings(deadline=None, max_examples=8)
def test_every_queue_orders_as_a_sort_by_its_rule_s_definition_would(name: str, data: st.DataObject) -> None:
    rule = QUEUE_RULES[name]()
    watcher = rule if isinstance(rule, Watcher) else None
    queues = [queue_for(rule), queue_for(rule)]
    books = Books()
    where: dict[ActiveCall, int] = {}
    running: list[ActiveCall] = []
    now = 0.0

    def put(active: ActiveCall, instance: int) -> None:
        active.predicted_seconds = data.draw(SECONDS)
        active.alone_seconds = data.draw(SECONDS)
        books.join(active, where)
        if name == "ProjectedRatio":
            books.level(books.begun[active.call.call_id][2] + active.alone_seconds, 1.1)
        if name == "QLM":
            books.level(active.query.slo_seconds, 1.25)
        if name == "LeastAttained" and (served := books.begun[active.call.call_id][0]) > 0:
            books.level(served, 2.0)
        active.latest_start = active.released + (active.allowed or 0) - active.alone_seconds
        active.key = rule.key(active)
        queues[instance].push(active)
        where[active] = instance

    def take(active: ActiveCall) -> None:
        queues[where.pop(active)].remove(active)

    def end(active: ActiveCall, *, answered: bool) -> None:
        took = usage(data.draw(st.integers(0, 300)), prompt_tokens=active.call.prompt_tokens)
        if watcher is not None:
            watcher.ended(now, active, took if answered else None)
        if answered:
            books.answer(active, now)
            cost = 2 * (took.output_tokens - active.output_tokens) / active.call.tenant_weight
            books.tokens[active.call.tenant] += cost

    queries: dict[str, ActiveCall] = {}
    for order in range(data.draw(st.integers(1, 30))):
        now += data.draw(st.integers(0, 80)) / 8
        tenant = data.draw(st.sampled_from(sorted(WEIGHTS)))
        call = a_call(
            f"c{order}",
            query_id=f"q{data.draw(st.integers(0, 9))}",
            tenant=tenant,
            tenant_weight=WEIGHTS[tenant],
            prompt_tokens=data.draw(st.integers(0, 2000)),
            query_arrival=now,
        )
        active = an_active_call(call, order=order, released=now, output_tokens=100.0)
        first = queries.setdefault(call.query_id, active)
        active.query = first.query
        if not active.query.slo_seconds:
            active.query.slo_seconds = data.draw(SECONDS)
        active.allowed, active.rest_seconds = data.draw(SECONDS), data.draw(SECONDS)
        put(active, data.draw(st.integers(0, 1)))

        chosen = data.draw(st.sampled_from(sorted(where, key=lambda each: each.order)))
        match data.draw(
            st.sampled_from(["cancel", "move", "estimate", "send", "send", "finish", "fail", "-"])
        ):
            case "cancel":
                take(chosen)
                end(chosen, answered=False)
                books.left_last = chosen.call.tenant
            case "move" | "estimate" as what:
                instance = where[chosen] if what == "estimate" else 1 - where[chosen]
                queues[where[chosen]].remove(chosen)
                del where[chosen]
                # It goes on waiting, so that its tenant is not lifted.
                others = {**where, chosen: 0}
                where.update(others)
                put(chosen, instance)
            case "send":
                sending = queues[where[chosen]].first(now)
                assert sending is not None
                take(sending)
                sending.sent = now
                running.append(sending)
                if watcher is not None:
                    watcher.sent(now, sending)
                books.left_last = sending.call.tenant
                cost = (sending.call.prompt_tokens + 200) / sending.call.tenant_weight
                books.tokens[sending.call.tenant] += cost
            case "finish" | "fail" as what if running:
                over = running.pop(data.draw(st.integers(0, len(running) - 1)))
                end(over, answered=what == "finish")

        for number, queue in enumerate(queues):
            here = [each for each, place in where.items() if place == number]
            expected = [each.order for each in naive_order(name, books, now, here)]
            assert [each.order for each in queue.ordered(now)] == expected
            head = queue.first(now)
            assert (head.order if head else None) == next(iter(expected), None)
            assert len(queue) == len(here)
