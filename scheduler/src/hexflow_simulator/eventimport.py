"""A router's event log as a trace: what was asked, with the lengths that the engines counted.

The log has every call as it was released and what it used. From that a query's stages, their order, the chains inside
them, and the pauses in which no call was out are put together again; what an instance or a policy did is left behind. Only queries that ended while the log was
written count: of the others nobody knows the rest.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from hexflow_scheduler import Call, InvalidRecord, PrefixBlock, Usage
from hexflow_scheduler.decision import End
from hexflow_scheduler.eventlog import START, Record, decode
from hexflow_simulator.complaint import InvalidTrace, Where
from hexflow_simulator.lines import text_lines
from hexflow_simulator.query import SimulatedCall, SimulatedQuery, SimulatedStage
from hexflow_simulator.shape import calls_of
from hexflow_simulator.tracefile import LONGEST_CHAIN

_MOST_TOKENS = 10**8
_CLOSING_TOKENS = 16
"""What is taken off a block that is the end of a prompt: an engine computes the last tokens itself."""


@dataclass(slots=True)
class _Released:
    """Follow a call through the log."""

    call: Call
    at: float
    ended: float | None = None
    usage: Usage | None = None
    children: list["_Released"] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """Follow a query through the log."""

    arrival: float
    calls: dict[str, _Released] = field(default_factory=dict)
    roots: dict[str, list[_Released]] = field(default_factory=dict)
    """Calls that no other call of their stage released, by stage in the order of their first release."""
    ended: float | None = None
    """When its answer was there; None while it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogFile:
    """An event log that was checked; each iteration reads it anew."""

    path: Path
    count: int
    """Queries."""
    left_out: int
    """Queries that did not end before the log did, or without any call that was answered."""
    first: float
    """Arrival of the first query, in seconds since the epoch."""
    seconds: float
    """From the first arrival to the last."""
    complete: frozenset[bytes]
    """Digests of run and id of the queries that count."""

    def __iter__(self) -> Iterator[SimulatedQuery]:
        """Yield the queries in the order they arrived, the first at instant 0."""
        last = 0.0
        waiting: dict[str, _Open] = {}
        for _, run, _ in _followed(self.path, waiting, self.complete):
            while waiting:
                query_id, query = next(iter(waiting.items()))
                if query.ended is None:
                    break
                del waiting[query_id]
                last = max(last, query.arrival - self.first)
                yield _simulated(query_id if run == 1 else f"{query_id}@{run}", query, arrival=last)


def read_event_log(path: Path) -> EventLogFile:
    """Check an event log and return it as a trace; raises InvalidTrace with the first line that is wrong."""
    complete: set[bytes] = set()
    arrivals: list[float] = []
    seen = 0
    waiting: dict[str, _Open] = {}
    for line, run, ended in _followed(path, waiting, None):
        if ended is None:
            seen += len(waiting)  # cut off by a new run
            continue
        query = waiting.pop(ended)
        seen += 1
        if any(released.usage for released in query.calls.values()):
            _check(Where(str(path), line), ended, query)
            complete.add(_digest(run, ended))
            arrivals = [min([query.arrival, *arrivals]), max([query.arrival, *arrivals])]
    if not complete:
        raise InvalidTrace(
            Where(str(path)), "no query that ended while the log was written", "give a longer log"
        )
    return EventLogFile(
        path=path,
        count=len(complete),
        left_out=seen + len(waiting) - len(complete),
        first=arrivals[0],
        seconds=arrivals[1] - arrivals[0],
        complete=frozenset(complete),
    )


def _followed(
    path: Path, waiting: dict[str, _Open], complete: frozenset[bytes] | None
) -> Iterator[tuple[int, int, str | None]]:
    """Put what is known of each query into ``waiting``; yield line, run and id of each query that ends,
    None for the id before a new run.

    With ``complete``, queries that are not among them are passed over, so that none is waited for in vain.
    """
    run, begun = 0, 0.0
    calls: dict[str, str] = {}  # query by call
    for number, line in text_lines(path):
        record = _record(Where(str(path), number), line)
        if record.input == START:
            yield number, run, None
            run += 1
            begun = (
                record.now
            )  # above zero where the log only goes on here: what began before is not all there
            waiting.clear()
            calls.clear()
            continue
        if not run:
            raise InvalidTrace(
                Where(str(path), number), "no start record before it", "give a log from its beginning"
            )
        if record.input == "arrive":
            wanted = tuple(
                call
                for call in record.arguments["calls"]
                if call.query_arrival >= begun
                and (complete is None or _digest(run, call.query_id) in complete)
            )
            _released(record.now, wanted, waiting, calls)
        elif record.input == "finished":
            query = waiting.get(calls.get(record.arguments["call_id"], ""))
            if query:
                query.calls[record.arguments["call_id"]].usage = record.arguments["usage"]
        for ended in _ended(record, waiting, calls):
            if query := waiting.get(ended):
                query.ended = record.now
                yield number, run, ended


def _digest(run: int, query_id: str) -> bytes:
    # Not hash(): the one of a string is another in every process, and a trace is read by several.
    return blake2b(f"{run}/{query_id}".encode(errors="surrogatepass"), digest_size=8).digest()


def _check(where: Where, query_id: str, query: _Open) -> None:
    """Refuse a query whose records are well formed and make no sense."""
    try:
        found = _simulated(query_id, query, arrival=query.arrival)
        sound = math.isfinite(found.arrival) and all(
            isinstance(tokens, int) and 0 <= tokens <= _MOST_TOKENS
            for _, call in calls_of(found.stages)
            for tokens in (call.prompt_tokens, call.output_tokens, *(block.tokens for block in call.prefix))
        )
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        sound = False
    if not sound:
        raise InvalidTrace(
            where, f"query {query_id!r} has instants or lengths that make no sense", "leave its lines out"
        )
    if any(_calls_in_a_row(stage.calls) > LONGEST_CHAIN for stage in found.stages):
        raise InvalidTrace(
            where, f"query {query_id!r} has a chain of more than {LONGEST_CHAIN} calls", "leave its lines out"
        )


def _calls_in_a_row(calls: tuple[SimulatedCall, ...]) -> int:
    rank = 0
    while calls:
        rank, calls = rank + 1, tuple(later for call in calls for later in call.then)
    return rank


def _record(where: Where, line: str) -> Record:
    try:
        return decode(line)
    except (InvalidRecord, RecursionError) as error:
        raise InvalidTrace(
            where, str(error), "give an event log as the router writes it (GET /v1/events)"
        ) from error


def _released(
    now: float, released: tuple[Call, ...], waiting: dict[str, _Open], calls: dict[str, str]
) -> None:
    """Add calls that were released together, each below the call of its chain that ended just before."""
    for call in released:
        query = waiting.get(call.query_id)
        if query is None:
            query = waiting[call.query_id] = _Open(call.query_arrival)
        calls[call.call_id] = call.query_id
        mine = _Released(call, now)
        parent = _parent(query, call, alone=len(released) == 1)
        query.calls[call.call_id] = mine
        if parent:
            parent.children.append(mine)
        else:
            query.roots.setdefault(call.stage, []).append(mine)


def _parent(query: _Open, call: Call, *, alone: bool) -> _Released | None:
    if not call.round:
        return None
    before = [
        each
        for each in query.calls.values()
        if each.call.stage == call.stage and each.call.round == call.round - 1 and each.usage
    ]
    if alone:
        own = [each for each in before if each.call.sibling == call.sibling and not each.children]
        before = own or before
    return max(before, key=lambda each: each.ended or 0.0, default=None)


def _ended(record: Record, waiting: dict[str, _Open], calls: dict[str, str]) -> Iterator[str]:
    """Note the calls that a record ends, and yield the queries that end with it."""
    for decision in record.decisions:
        if not isinstance(decision, End):
            continue
        query_id = calls.pop(decision.call_id, "")
        query = waiting.get(query_id)
        if query is None:
            continue
        query.calls[decision.call_id].ended = record.now
        if query_id == decision.call_id:  # a call that is a query of its own
            yield query_id
    if record.input == "query_ended":
        yield record.arguments["query_id"]


def _simulated(query_id: str, query: _Open, *, arrival: float) -> SimulatedQuery:
    head = next(iter(query.calls.values())).call
    spans = {
        name: (
            min(each.at for each in query.calls.values() if each.call.stage == name),
            max(each.ended or each.at for each in query.calls.values() if each.call.stage == name),
        )
        for name in query.roots
    }
    after = _order(spans)
    stages: list[SimulatedStage] = []
    before: tuple[str, ...] = ()
    for name, roots in query.roots.items():
        ready = max([query.arrival, *(spans[each][1] for each in after[name] or before)])
        calls = tuple(call for root in roots for call in _calls(root, ready))
        stages.append(SimulatedStage(name=name or "call", calls=calls, after=after[name]))
        before = (name,)
    last = max(end for _, end in spans.values())
    return SimulatedQuery(
        query_id=query_id,
        arrival=arrival,
        stages=tuple(stages),
        model=head.model,
        workflow=head.workflow,
        tenant=head.tenant,
        tenant_weight=head.tenant_weight,
        pools=head.pools,
        slo_seconds=None if head.deadline is None else head.deadline - head.query_arrival,
        closing_seconds=0.0 if query.ended is None else max(0.0, query.ended - last),
    )


def _order(spans: dict[str, tuple[float, float]]) -> dict[str, tuple[str, ...]]:
    """Return what each stage came after: of the stages that had ended when it began, those no other of them came after."""
    found: dict[str, tuple[str, ...]] = {}
    before: list[str] = []
    ahead: dict[str, set[str]] = {}
    for name, (begun, _) in spans.items():
        ended = [earlier for earlier in before if spans[earlier][1] <= begun]
        ahead[name] = set(ended).union(*(ahead[earlier] for earlier in ended))
        last = tuple(one for one in ended if not any(one in ahead[other] for other in ended))
        found[name] = () if last == tuple(before[-1:]) else last
        before.append(name)
    return found


def _calls(released: _Released, ready: float) -> tuple[SimulatedCall, ...]:
    """Return a call, which waited for nothing any more from ``ready`` on, with those after it.

    One that was never answered is left out, those after it are not.
    """
    ended = released.ended or released.at
    then = tuple(call for child in released.children for call in _calls(child, ended))
    if released.usage is None:
        return then
    call, usage = released.call, released.usage
    prompt = max(1, usage.prompt_tokens or call.prompt_tokens)
    output = max(1, round(usage.output_tokens / call.samples))
    prefix: list[PrefixBlock] = []
    left = prompt
    for block in call.prefix:
        if block.tokens < left:
            prefix.append(block)
        elif left > _CLOSING_TOKENS:
            prefix.append(PrefixBlock(key=block.key, tokens=left - _CLOSING_TOKENS))
        left -= block.tokens
        if left <= 0:
            break

    def one(then: tuple[SimulatedCall, ...]) -> SimulatedCall:
        return SimulatedCall(
            prompt_tokens=prompt,
            output_tokens=output,
            max_tokens=max(call.max_tokens, output),
            prefix=tuple(prefix),
            then=then,
            pause_seconds=max(0.0, released.at - ready),
        )

    # several samples of one call decode side by side, as so many calls would
    return (one(then), *(one(()) for _ in range(call.samples - 1)))
