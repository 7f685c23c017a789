"""The account of a simulation: what became of its queries and calls, counted, kept or handed on."""

from collections.abc import Callable

from hexflow_scheduler import Outcome
from hexflow_simulator.result import CallResult, QueryResult, SimulationResult
from hexflow_simulator.underway import CallUnderWay, QueryUnderWay


class Account:
    """Take down how queries and calls end."""

    def __init__(
        self,
        *,
        on_query: Callable[[QueryResult], None] | None = None,
        on_call: Callable[[CallResult], None] | None = None,
        record_calls: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.retries = 0
        self._on_query = on_query
        self._queries: list[tuple[int, QueryResult]] = []
        self._calls: list[CallResult] = []
        self._on_call = self._calls.append if record_calls else on_call
        self._progress = progress
        self._ended_queries = 0
        self._ended_calls = 0
        self._failed_calls = 0
        self._prompt_tokens = 0
        self._cached_tokens = 0
        self._output_tokens = 0
        self._last_end = 0.0

    def query_ended(self, now: float, of: QueryUnderWay, reason: str) -> None:
        """Take down the end of a query; ``reason`` is why it has no answer, empty where it has one."""
        query = of.query
        result = QueryResult(
            query_id=query.query_id,
            workflow=query.workflow,
            tenant=query.tenant,
            arrival=query.arrival,
            finished=None if reason else now,
            slo_seconds=query.slo_seconds,
            base_seconds=query.base_seconds,
            calls=of.calls,
            reason=reason,
        )
        self._last_end = now
        self._ended_queries += 1
        if self._on_query is not None:
            self._on_query(result)
        else:
            self._queries.append((of.rank, result))
        if self._progress is not None:
            self._progress(self._ended_queries)

    def call_ended(self, now: float, live: CallUnderWay, outcome: Outcome) -> None:
        """Take down the end of a call."""
        self._ended_calls += 1
        if outcome is Outcome.FINISHED:
            self._prompt_tokens += live.call.prompt_tokens
            self._cached_tokens += live.cached_tokens
            self._output_tokens += live.output_tokens
        elif outcome is not Outcome.DROPPED:
            self._failed_calls += 1
        if self._on_call is not None:
            self._on_call(_call_result(now, live, outcome))

    def result(self, policy: str) -> SimulationResult:
        """Return the result of the simulation so far."""
        self._queries.sort(key=_rank)
        return SimulationResult(
            policy=policy,
            queries=tuple([result for _, result in self._queries]),
            calls=tuple(self._calls),
            query_count=self._ended_queries,
            call_count=self._ended_calls,
            failed_calls=self._failed_calls,
            retries=self.retries,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            output_tokens=self._output_tokens,
            ended=self._last_end,
        )


def _rank(entry: tuple[int, QueryResult]) -> int:
    return entry[0]


def _call_result(now: float, live: CallUnderWay, outcome: Outcome) -> CallResult:
    return CallResult(
        call_id=live.call.call_id,
        query_id=live.call.query_id,
        stage=live.call.stage,
        instance_id=live.instance_id,
        released=live.released,
        placed=live.placed,
        sent=live.sent,
        first_token=live.first_token,
        finished=now,
        prompt_tokens=live.call.prompt_tokens,
        output_tokens=live.output_tokens,
        cached_tokens=live.cached_tokens,
        attempts=live.attempts,
        outcome=outcome.value,
    )
