"""Outlook: what is going to happen on each instance, in a few numbers that every event keeps up to date.

LeastHarm's books. A decision reads them and makes no pass over calls, except over the rows of an
instance that may win. Times are seconds, instants seconds since the epoch, lengths tokens.

How far a running call is, nobody reports. Each instance has a **token clock** instead: it shows how many
tokens a call would have got that ran from the beginning, stands still while a prompt is prefilled, and
else goes on by one a step. A call's end is a reading of that clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from hexflow_scheduler.active import ActiveCall, OpenQuery
from hexflow_scheduler.harm import Row
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
    slo: float
    """Seconds its query may take in all."""
    rest: float
    """Seconds from its end to the end of its query."""
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
        self.prefill, self.kv_tokens, self.finish = on.prefill, on.kv_tokens, on.finish

    def row(self, elsewhere: float) -> Row:
        """Return its row; ``elsewhere`` is the latency of its query by the query's calls on other instances."""
        tail = self.rest - self.query.arrival
        return self.query, self.end, self.output, LEAST_LEFT * self.output, tail, elsewhere, self.slo


@dataclass(frozen=True, slots=True)
class Weighed:
    """Say what a call would meet on an instance, and do to it."""

    outlook: "Outlook"
    start: float
    """Instant from which what runs there goes on decoding."""
    prefill: float
    """Seconds for which the call stops everybody there: prefilling what of its prompt is not cached."""
    kv_tokens: float
    margin: float
    """Seconds by which it makes each token slower for everybody."""
    finish: float
    """Instant at which it would end."""


def foresee(active: ActiveCall) -> Foreseen:
    """Return what is foreseen of a call whose query knows its SLO."""
    call, output = active.call, active.output_tokens
    return Foreseen(
        active,
        active.query,
        slo=active.query.slo_seconds,
        rest=active.rest_seconds,
        output=output,
        samples=call.samples,
        context=call.samples * (call.prompt_tokens + output / 2),
    )


class Board:
    """Hold what is foreseen of all live calls."""

    def __init__(self) -> None:
        self.now = 0.0
        """Instant of the last decision."""
        self.calls: dict[ActiveCall, Foreseen] = {}
        self._stale: dict[OpenQuery, None] = {}
        """Queries whose rows are out of date, in the order in which they became so."""
        self._written: dict[OpenQuery, list[Outlook]] = {}
        """Where each query has rows."""

    def touch(self, query: OpenQuery) -> None:
        """Note that a query's rows are out of date."""
        self._stale[query] = None

    def refresh(self, but: OpenQuery) -> None:
        """Bring the rows of all queries up to date, except those of ``but``, which nobody will read."""
        if not self._stale:
            return
        keep = but in self._stale
        for query in self._stale:
            if query is not but:
                self._write(query)
        self._stale.clear()
        if keep:
            self._stale[but] = None

    def of(self, query: OpenQuery) -> list[Foreseen]:
        """Return what is foreseen of a query's calls that are on an instance."""
        known = self.calls
        found = [known[active] for active in query.calls.values() if active in known]
        return [each for each in found if each.outlook is not None]

    def _write(self, query: OpenQuery) -> None:
        for outlook in self._written.pop(query, ()):
            outlook.rows.pop(query, None)
            outlook.groups.pop(query, None)
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
            else:
                outlook.groups[query] = tuple(each.row(elsewhere) for each in here)


def latest(calls: Iterable[Foreseen]) -> float:
    """Return the latency of a query by the given of its calls, as predicted when they were placed; 0 for none."""
    return max((each.finish + each.rest - each.query.arrival for each in calls), default=0.0)


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
        self._reckon()

    def clock(self, now: float) -> float:
        """Return the reading of the token clock."""
        self._advance(now)
        return self._clock

    def weigh(self, call: Foreseen, now: float) -> Weighed:
        """Return what a call would meet here, and do to what is here."""
        load = self.load
        if load.speed is not self._speed or load.foreign != self._foreign:
            self._reckon()
        self._advance(now)
        prompt = call.active.call.prompt_tokens
        uncached = prompt - load.cached_tokens(call.active)
        prefill = uncached * (self._c1 + self._c2 * (prompt - uncached / 2))
        kv_tokens = uncached + call.output * call.samples
        margin = self._t1 * call.samples + self._t2 * call.context
        backlog = self._prefill_waiting
        if self._prefill_until > now:
            backlog += self._prefill_until - now
        wait = self._wait(call.samples, kv_tokens)
        return Weighed(
            self,
            now + PREFILL_FELT * backlog,
            prefill,
            kv_tokens,
            margin,
            now + wait + backlog + prefill + call.output * (self.step + margin),
        )

    def _wait(self, samples: int, kv_tokens: float) -> float:
        # Until slots and KV are free: the share of what runs that has to end, times what it has left.
        if not self._running:
            return 0.0
        load, profile = self.load, self.load.instance.profile
        slots = load.slots_taken + load.slots_waiting + load.foreign + samples - profile.slots
        tokens = load.kv_taken + self._kv_waiting + kv_tokens - profile.kv_tokens
        if slots <= 0 and tokens <= 0:
            return 0.0
        share = max(slots / max(1, load.slots_taken), tokens / max(1, load.kv_taken))
        left = max(self._ends - self._running * self._clock, self._leasts) / self._running
        return share * left * self.step

    # Following

    def entered(self, active: ActiveCall, /) -> None:
        """See ``Follower.entered``."""
        call = self._board.calls.get(active)
        if call is None:
            # It was not placed by the rule, but stays while its instance changes.
            call = self._board.calls[active] = foresee(active)
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
        each = self._t1
        if self._sequences:
            each += self._t2 * self._context / self._sequences
        batch = min(self._sequences + self._foreign, profile.slots)
        self.step = speed.decode * profile.t0 + batch * each
