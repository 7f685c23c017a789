"""The whole evaluation that LeastHarm's bounds and books spare: every instance, every call, by the formula."""

from math import inf, isclose

from hexflow_scheduler import Parameters
from hexflow_scheduler.active import OpenQuery
from hexflow_scheduler.dispatch.least_harm import LeastHarm
from hexflow_scheduler.outlook import Foreseen, Outlook
from support.busy import BusyFleet


def whole_harm(now: float, call: Foreseen, outlook: Outlook, rule: LeastHarm, exponent: float) -> float:
    """Return J of an instance by the formula, over all calls and queries, with no books but the clocks."""
    load, call_data = outlook.load, call.active.call
    weighed = outlook.weigh(call, now)
    profile, speed = load.instance.profile, load.speed
    here = [rule.board.calls[active] for active in (*load.running.values(), *load.queue.ordered(now))]
    n = min(profile.slots, sum(each.samples for each in here) + load.foreign)
    contexts = sum(each.samples * (each.prompt + each.output / 2) for each in here)
    mean = contexts / sum(each.samples for each in here) if here else 0.0
    tp = speed.decode * (profile.t0 + n * (profile.t1 + profile.t2 * mean))
    cached = load.cached_tokens(call.active)
    pf = speed.prefill_seconds(call_data.prompt_tokens, cached_tokens=cached)
    mg = speed.decode * call.samples * (profile.t1 + profile.t2 * (call.prompt + call.output / 2))
    for known, by_hand in ((weighed.step, tp), (weighed.stall, pf), (weighed.margin, mg)):
        assert isclose(known, by_hand, rel_tol=1e-9, abs_tol=1e-9)
    without: dict[OpenQuery, float] = {}
    with_it: dict[OpenQuery, float] = {}
    slo, arrival = {call.query: call.slo}, {call.query: call.arrival}
    for each in here:
        left = max(0.25 * each.output, min(each.output, each.end - weighed.clock))
        end = weighed.start + left * tp + each.rest
        query = each.query
        slo[query], arrival[query] = each.slo, each.arrival
        without[query] = max(without.get(query, -inf), end)
        with_it[query] = max(with_it.get(query, -inf), end + pf + min(left, call.output) * mg)
    own = call.query
    with_it[own] = max(with_it.get(own, -inf), weighed.finish + call.rest)
    without[own] = max(without.get(own, -inf), now + call.rest)
    total = 0.0
    for query in without:
        live = [rule.board.calls[each] for each in query.calls.values() if each in rule.board.calls]
        elsewhere = [each.finish + each.rest for each in live if each.outlook not in (outlook, None)]
        before = (
            max(without[query], *elsewhere) - arrival[query] if elsewhere else without[query] - arrival[query]
        )
        after = (
            max(with_it[query], *elsewhere) - arrival[query] if elsewhere else with_it[query] - arrival[query]
        )
        total += slo[query] * ((after / slo[query]) ** exponent - (before / slo[query]) ** exponent)
    return total


def compare(busy: BusyFleet, *, exponent: float) -> None:
    """Compare the next decision in a busy fleet with the whole evaluation, and carry it out."""
    rule, fleet = busy.rule, busy.fleet
    siblings = busy.siblings()
    for active in siblings:
        fleet.slo_seconds(active)
    call = rule.board.foresee(siblings[0])
    rule.board.now = now = rule.board.instant(busy.now)
    candidates = [rule.attend(load) for load in fleet.candidates(call.active)]
    chosen, scores = rule.least(now, call, candidates, exponent)
    harms = [whole_harm(now, call, outlook, rule, exponent) for outlook in candidates]
    chosen_harm = harms[candidates.index(chosen.outlook)]
    assert isclose(chosen_harm, min(harms), rel_tol=1e-8, abs_tol=1e-12), (chosen_harm, min(harms))
    score = dict(scores)[chosen.outlook.load.instance_id]
    assert isclose(-score * call.slo, chosen_harm, rel_tol=1e-6, abs_tol=1e-9), (score, chosen_harm)
    for choice in rule.place(busy.now, siblings, fleet, Parameters(exponent=exponent, fairness=0.0)):
        busy.carry_on(choice.active, choice.load)
