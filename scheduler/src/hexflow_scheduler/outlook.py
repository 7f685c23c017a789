"""Outlook: what is going to happen on each instance, in a few numbers that every event keeps up to date.

LeastHarm's books. A decision reads them and makes no pass over calls, except over the rows of an
instance that may win. Times are seconds, instants seconds since the board's first, lengths tokens.

How far a running call is, nobody reports. Each instance has a **token clock** instead: it shows how many
tokens a call would have got that ran from the beginning, stands still while a prompt is prefilled, and
else goes on by one a step. A call's end is a reading of that clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from hexflow_scheduler.active import ActiveCall, OpenQuery
from hexflow_scheduler.call import Call
from hexflow_scheduler.harm import SURELY, Pressure, Row, pressure, rise
from hexflow_scheduler.load import InstanceLoad

PREFILL_FELT = 0.7
"""Share of the outstanding prefill that delays the calls that decode (the study's)."""
LEAST_LEFT = 0.25
"""Share of its expected output that a call is thought to have before it at least, however long it has run."""


@dataclass(slots=True, eq=False)
class Foreseen:
    """Keep what is foreseen of one live call."""

    active: ActiveCall
    query: OpenQuery
    arrival: float
    """Instant at which its query arrived."""
    slo: float
    """Seconds its query may take in all."""
    rest: float
    """Seconds from its end to the end of its query."""
    prompt: int
    output: float
    """Tokens of each sample."""
    samples: int
    context: float
    """Tokens of context that it attends to on average, all samples together."""
    outlook: "Outlook | None" = None
    """Of the instance it waits for or runs on."""
    prefill: float = 0.0
    """Seconds of prefilling what of its prompt is not cached there."""
    kv_tokens: float = 0.0
    """Tokens of KV cache that it needs there."""
    end: float = inf
    """Reading of that instance's token clock at its end; infinite while it waits."""
    finish: float = 0.0
    """Instant at which it ends there, as predicted when it was placed."""

    def settle(self, on: "Weighed") -> None:
        """Take over what was found for the instance that it is put on."""
        self.prefill, self.kv_tokens, self.finish = on.stall, on.kv_tokens, on.finish

    def row(self, elsewhere: float) -> Row:
        """Return its row; ``elsewhere`` is the latency of its query by the query's calls on other instances."""
        tail = self.rest - self.arrival
        return self.end, self.output, LEAST_LEFT * self.output, tail, elsewhere, self.slo


@dataclass(slots=True, eq=False, kw_only=True)
class Weighed:
    """Say what a call would meet on an instance, and do to what is there."""

    outlook: "Outlook"
    start: float
    """Instant from which what is there goes on decoding."""
    step: float
    """Seconds of a token for what is there."""
    clock: float
    """Reading of the token clock."""
    stall: float
    """Seconds for which the call stops everybody there: prefilling what of its prompt is not cached."""
    margin: float
    """Seconds by which it makes each of the next tokens slower for everybody."""
    kv_tokens: float
    finish: float
    """Instant at which it would end."""


class Board:
    """Hold what is foreseen of all live calls."""

    def __init__(self) -> None:
        self.now = 0.0
        """Instant of the last decision."""
        self._origin: float | None = None
        self.calls: dict[ActiveCall, Foreseen] = {}
        self._stale: dict[OpenQuery, None] = {}
        """Queries whose rows are out of date, in the order in which they became so."""
        self._written: dict[OpenQuery, list[Outlook]] = {}
        """Where each query has rows."""

    def instant(self, now: float) -> float:
        """Return an instant, given in seconds since the epoch, by the board's own clock.

        Differences of instants in the billions would be exact to a microsecond only, and their cubes less.
        """
        if self._origin is None:
            self._origin = now
        return now - self._origin

    def foresee(self, active: ActiveCall) -> Foreseen:
        """Return what is foreseen of a call whose query knows its SLO."""
        call, output = active.call, active.output_tokens
        return Foreseen(
            active,
            active.query,
            arrival=self.instant(active.query.arrival),
            slo=active.query.slo_seconds,
            rest=active.rest_seconds,
            prompt=call.prompt_tokens,
            output=output,
            samples=call.samples,
            context=call.samples * (call.prompt_tokens + output / 2),
        )

    def ahead(self, call: Call) -> float:
        """Return how many times as many queries the call's tenant has under way as others on average; 1 at least.

        The call's own is counted, queries between two stages are not, and a tenant's weight divides its number.
        """
        tenants = {active.query: active.call for active in self.calls}
        under_way = {call.tenant: 1.0 / call.tenant_weight}
        for each in tenants.values():
            under_way[each.tenant] = under_way.get(each.tenant, 0.0) + 1.0 / each.tenant_weight
        mine = under_way.pop(call.tenant)
        if not under_way:
            return 1.0
        return max(1.0, mine * len(under_way) / sum(under_way.values()))

    def touch(self, query: OpenQuery) -> None:
        """Note that a query's rows are out of date."""
        self._stale[query] = None

    def refresh(self, but: OpenQuery) -> None:
        """Bring the rows of all queries up to date, and take out those of ``but`` until the next time."""
        for query in self._stale:
            if query is not but:
                self._write(query)
        self._stale.clear()
        self._erase(but)
        self._stale[but] = None

    def of(self, query: OpenQuery) -> list[Foreseen]:
        """Return what is foreseen of a query's calls that are on an instance."""
        known = self.calls
        found = [known[active] for active in query.calls.values() if active in known]
        return [each for each in found if each.outlook is not None]

    def _erase(self, query: OpenQuery) -> None:
        for outlook in self._written.pop(query, ()):
            outlook.rows.pop(query, None)
            outlook.groups.pop(query, None)
            outlook.dull()

    def _write(self, query: OpenQuery) -> None:
        self._erase(query)
        calls = self.of(query)
        if not calls:
            return
        by_outlook: dict[Outlook, list[Foreseen]] = {}
        for each in calls:
            if each.outlook is not None:
                by_outlook.setdefault(each.outlook, []).append(each)
        self._written[query] = list(by_outlook)
        for outlook, here in by_outlook.items():
            elsewhere = latest(each for each in calls if each.outlook is not outlook)
            if len(here) == 1:
                outlook.rows[query] = here[0].row(elsewhere)
                outlook.dull()
            else:
                outlook.groups[query] = tuple(each.row(elsewhere) for each in here)


def latest(calls: Iterable[Foreseen]) -> float:
    """Return the latency of a query by the given of its calls, as predicted when they were placed; 0 for none."""
    return max((each.finish + each.rest - each.arrival for each in calls), default=0.0)


class Outlook:
    """Keep the books of one instance; a ``Follower`` of its load."""

    __slots__ = (
        "_at",
        "_board",
        "_c1",
        "_c2",
        "_clock",
        "_context",
        "_ends",
        "_foreign",
        "_kv_waiting",
        "_leasts",
        "_prefill_until",
        "_prefill_waiting",
        "_pressure",
        "_pressure_of",
        "_running",
        "_sequences",
        "_speed",
        "_t1",
        "_t2",
        "groups",
        "load",
        "rows",
        "step",
    )

    def __init__(self, load: InstanceLoad, board: Board) -> None:
        self.load = load
        self.rows: dict[OpenQuery, Row] = {}
        """Of queries with one call here."""
        self.groups: dict[OpenQuery, tuple[Row, ...]] = {}
        """Of queries with several."""
        self._board = board
        self._at = board.now
        self._clock = 0.0
        self._sequences = 0
        self._context = 0.0
        self._running = 0
        self._ends = 0.0
        """Sum of the ends of what runs, by the token clock."""
        self._leasts = 0.0
        """Sum of the tokens that what runs has left at least."""
        self._prefill_until = board.now
        """Instant at which all that was sent is prefilled."""
        self._prefill_waiting = 0.0
        """Seconds of prefilling what waits."""
        self._kv_waiting = 0.0
        self._pressure = Pressure()
        self._pressure_of = 0.0
        """The exponent that it was reckoned for; 0 where something has changed since."""
        self._reckon()

    def dull(self) -> None:
        """Note that rows have changed."""
        self._pressure_of = 0.0

    def bound(
        self, call: Foreseen, now: float, cached: float, *, before: float, alone: bool, exponent: float
    ) -> float:
        """Return a lower bound on the harm of a call here, without a look at the rows.

        ``cached`` tokens of its prompt are in the prefix cache, at most; its query ends at latency ``before``
        without it. Where the query has other calls here, not ``alone``, the harm to itself is left out.
        """
        if self.load.speed is not self._speed or self.load.foreign != self._foreign:
            self._reckon()
        if self._pressure_of != exponent:
            self._press(now, exponent)
        stall = self._stall(call.prompt, cached)
        margin = self._t1 * call.samples + self._t2 * call.context
        harm = self._pressure.harm(stall, margin, call.output)
        if alone:
            after = self._finish(call, now, cached, stall, margin) + call.rest - call.arrival
            if after > before:
                harm += rise(before, after, call.slo, exponent)
        return harm * SURELY

    def weigh(self, call: Foreseen, now: float) -> Weighed:
        """Return what a call would meet here, and do to what is here."""
        self._update(now)
        cached = self.load.cached_tokens(call.active)
        stall = self._stall(call.prompt, cached)
        margin = self._t1 * call.samples + self._t2 * call.context
        return Weighed(
            outlook=self,
            start=now + PREFILL_FELT * self._backlog(now),
            step=self.step,
            clock=self._clock,
            stall=stall,
            margin=margin,
            kv_tokens=call.prompt - cached + call.output * call.samples,
            finish=self._finish(call, now, cached, stall, margin),
        )

    def _stall(self, prompt: int, cached: float) -> float:
        uncached = prompt - cached
        return uncached * (self._c1 + self._c2 * (prompt - uncached / 2))

    def _finish(self, call: Foreseen, now: float, cached: float, stall: float, margin: float) -> float:
        finish = now + self._backlog(now) + stall + call.output * (self.step + margin)
        return finish + self._wait(call, now, cached) if self._running else finish

    def _press(self, now: float, exponent: float) -> None:
        """Reckon what delays cost at least to the queries here, from now until something changes."""
        self._advance(now)
        self._pressure = pressure(
            self.rows.values(),
            start=now + PREFILL_FELT * self._backlog(now),
            step=self.step,
            clock=self._clock,
            exponent=exponent,
        )
        self._pressure_of = exponent

    def _update(self, now: float) -> None:
        if self.load.speed is not self._speed or self.load.foreign != self._foreign:
            self._reckon()
        self._advance(now)

    def _backlog(self, now: float) -> float:
        ahead = self._prefill_until - now
        return self._prefill_waiting + ahead if ahead > 0 else self._prefill_waiting

    def _wait(self, call: Foreseen, now: float, cached: float) -> float:
        # Until slots and KV are free: the share of what runs that has to end, times what it has left.
        load, profile = self.load, self.load.instance.profile
        slots = load.slots_taken + load.slots_waiting + load.foreign + call.samples - profile.slots
        kv_tokens = call.prompt - cached + call.output * call.samples
        tokens = load.kv_taken + self._kv_waiting + kv_tokens - profile.kv_tokens
        if slots <= 0 and tokens <= 0:
            return 0.0
        self._advance(now)
        share = max(slots / max(1, load.slots_taken), tokens / max(1, load.kv_taken))
        left = max(self._ends - self._running * self._clock, self._leasts) / self._running
        return share * left * self.step

    # Following

    def entered(self, active: ActiveCall, /) -> None:
        """See ``Follower.entered``."""
        call = self._board.calls.get(active)
        if call is None:
            # It was not placed by the rule, but stays while its instance changes.
            call = self._board.calls[active] = self._board.foresee(active)
            call.settle(self.weigh(call, self._board.now))
        self._advance(self._board.now)
        call.outlook = self
        call.end = inf
        self._prefill_waiting += call.prefill
        self._kv_waiting += call.kv_tokens
        self._sequences += call.samples
        self._context += call.context
        self._reckon()
        self._board.touch(call.query)

    def left(self, active: ActiveCall, /) -> None:
        """See ``Follower.left``."""
        call = self._board.calls.pop(active)
        self._advance(self._board.now)
        self._unqueue(call)
        self._leave(call)

    def started(self, now: float, active: ActiveCall, /) -> None:
        """See ``Follower.started``."""
        now = self._board.instant(now)
        call = self._board.calls[active]
        self._advance(now)
        self._unqueue(call)
        self._prefill_until = max(self._prefill_until, now) + call.prefill
        call.end = self._clock + call.output
        self._running += 1
        self._ends += call.end
        self._leasts += LEAST_LEFT * call.output
        self._board.touch(call.query)

    def stopped(self, now: float, active: ActiveCall, /) -> None:
        """See ``Follower.stopped``."""
        now = self._board.instant(now)
        call = self._board.calls.pop(active)
        self._advance(now)
        self._running -= 1
        self._ends -= call.end
        self._leasts -= LEAST_LEFT * call.output
        if not self._running:
            # Sums leave dust, and what was to be prefilled is not any more.
            self._ends = self._leasts = 0.0
            self._prefill_until = now
        self._leave(call)

    def _unqueue(self, call: Foreseen) -> None:
        empty = not len(self.load.queue)
        self._prefill_waiting = 0.0 if empty else self._prefill_waiting - call.prefill
        self._kv_waiting = 0.0 if empty else self._kv_waiting - call.kv_tokens

    def _leave(self, call: Foreseen) -> None:
        call.outlook = None
        self._sequences -= call.samples
        self._context = self._context - call.context if self._sequences else 0.0
        self._reckon()
        self._board.touch(call.query)

    def _advance(self, now: float) -> None:
        elapsed = now - self._at
        if elapsed <= 0:
            return
        stalled = self._prefill_until - self._at
        if stalled > 0:
            elapsed -= min(stalled, elapsed)
        self._clock += elapsed / self.step
        self._at = now

    def _reckon(self) -> None:
        """Reckon the seconds of a step with all that is here."""
        load = self.load
        profile, speed = load.instance.profile, load.speed
        self._speed, self._foreign = speed, load.foreign
        self._t1, self._t2 = speed.decode * profile.t1, speed.decode * profile.t2
        self._c1, self._c2 = speed.prefill * profile.c1, speed.prefill * profile.c2
        self._pressure_of = 0.0
        each = self._t1
        if self._sequences:
            each += self._t2 * self._context / self._sequences
        batch = min(self._sequences + self._foreign, profile.slots)
        self.step = speed.decode * profile.t0 + batch * each
