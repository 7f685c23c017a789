"""One try of a call at one instance: send it, guard every wait, judge what comes back.

The outcome is a whole answer, an open stream whose first event has come, or an ``AttemptFailed`` that says
whether another instance may be tried and whether the instance is to blame.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from hexflow_router.body import with_priority
from hexflow_router.exchange import Headers, UpstreamRequest
from hexflow_router.sse import StreamWatch, read_usage
from hexflow_router.upstream import Address, TimeOuts, Upstream, UpstreamFailed, UpstreamResponse, within
from hexflow_scheduler import Usage

LARGEST_ANSWER = 64 << 20
"""Bytes of an answer that is kept whole before it is passed on."""
LONGEST_RETRY_AFTER = 3600.0
"""Seconds beyond which an engine's ``Retry-After`` is not believed."""
_NOT_FOR_ENGINES = frozenset(
    [
        "host",
        "content-type",
        "content-length",
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
        "authorization",
        "cookie",
        "accept-encoding",
        "x-api-key",
        "api-key",
    ]
)
_NOT_FOR_CLIENTS = frozenset(
    [
        "content-length",
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "server",
        "date",
        "set-cookie",
        "www-authenticate",
    ]
)
_ELSEWHERE = frozenset({404, 408, 425, 429})


class AttemptFailed(Exception):
    """Say why a try failed."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        retryable: bool = True,
        blames_instance: bool = True,
        answer: "WholeAnswer | None" = None,
    ) -> None:
        """Keep the engine's own answer where it gave one."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retryable = retryable
        self.blames_instance = blames_instance
        self.answer = answer


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeAnswer:
    """Hold an answer that has come to its end."""

    status: int
    headers: Headers
    body: bytes
    usage: Usage | None

    def retry_after(self) -> float | None:
        """Return the engine's ``Retry-After`` in seconds, where it is a number."""
        for name, value in self.headers:
            if name == "retry-after" and value.strip().isascii() and value.strip().isdecimal():
                return min(float(value), LONGEST_RETRY_AFTER)
        return None


@dataclass(slots=True, kw_only=True)
class OpenStream:
    """Hold a stream whose first event has come."""

    status: int
    headers: Headers
    first: bytes
    response: UpstreamResponse
    watch: StreamWatch
    idle_seconds: float

    async def pieces(self, *, retryable: bool = False) -> AsyncGenerator[bytes]:
        """Yield the stream from its first event on. Raises AttemptFailed when it breaks."""
        watch = self.watch
        if self.first:
            yield self.first
        try:
            while not (watch.done or watch.failure):
                chunk = await within(
                    self.idle_seconds, self.response.read(), reason="IdleTimeout", doing="streaming"
                )
                if not chunk:
                    watch.end()
                    break
                passed = watch.feed(chunk)
                if passed:
                    yield passed
        except UpstreamFailed as problem:
            raise AttemptFailed(problem.reason, problem.message, retryable=retryable) from problem
        if watch.failure:
            self.response.close()
            raise AttemptFailed(*watch.failure, retryable=retryable)


class _Choice(msgspec.Struct):
    finish_reason: Any = None


class _Answer(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    data: msgspec.Raw = msgspec.Raw()


_ANSWER = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Send one request to one address."""

    upstream: Upstream
    address: Address
    request: UpstreamRequest
    priority: int | None
    predicted_seconds: float
    time_outs: TimeOuts
    patience: Callable[[float], float]
    """Turns a time-out in the router's seconds into real ones."""

    async def make(self) -> WholeAnswer | OpenStream:
        """Make the try. Raises AttemptFailed; cancelling drops the connection."""
        try:
            response = await within(
                self._first_seconds(),
                self.upstream.send(
                    self.address.url + self.request.path,
                    headers=self._headers(),
                    body=with_priority(self.request.body, self.priority),
                ),
                reason="FirstByteTimeout",
                doing="it was to begin its answer",
            )
        except UpstreamFailed as problem:
            raise AttemptFailed(problem.reason, problem.message) from problem
        try:
            return await self._judge(response)
        except UpstreamFailed as problem:
            response.close()
            raise AttemptFailed(problem.reason, problem.message) from problem
        except BaseException:
            response.close()
            raise

    def _first_seconds(self) -> float | None:
        # A whole answer's first byte is nearly its last: only for our own calls, whose length is known, is a bound
        # below the total one safe.
        own = self.request.retry_after_first_byte
        if not (self.request.stream or own):
            return None
        seconds = self.time_outs.first_byte_seconds
        return self.patience(seconds if not own else max(seconds, 10 * self.predicted_seconds))

    def _headers(self) -> Headers:
        kept = [(name, value) for name, value in self.request.headers if name not in _NOT_FOR_ENGINES]
        # It is JSON, whatever the caller calls it (`curl -d` says that it is a form, which vLLM refuses).
        kept.append(("content-type", "application/json"))
        if self.address.api_key is not None:
            kept.append(("authorization", f"Bearer {self.address.api_key}"))
        return kept

    async def _judge(self, response: UpstreamResponse) -> WholeAnswer | OpenStream:
        status = response.status
        headers = [(name, value) for name, value in response.headers if name not in _NOT_FOR_CLIENTS]
        if 300 <= status < 400:
            raise AttemptFailed("Redirected", f"The engine answered {status}; redirects are not followed.")
        if not 200 <= status < 600:
            raise AttemptFailed("Rubbish", f"The engine answered with the status {status}.")
        if status >= 400:
            raise _refusal(
                WholeAnswer(status=status, headers=headers, body=await self._all(response), usage=None)
            )
        kind = dict(headers).get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            stream = await self._open(response, status, headers)
            if not self.request.retry_after_first_byte:
                return stream
            body = b"".join([piece async for piece in stream.pieces(retryable=True)])
            return WholeAnswer(status=status, headers=headers, body=body, usage=stream.watch.usage)
        body = await self._all(response)
        return WholeAnswer(status=status, headers=headers, body=body, usage=self._check(body))

    async def _open(self, response: UpstreamResponse, status: int, headers: Headers) -> OpenStream:
        watch = StreamWatch()
        first = b""
        limit = self._first_seconds() or self.patience(self.time_outs.first_byte_seconds)
        while not first and not watch.failure and not watch.done:
            chunk = await within(
                limit, response.read(), reason="FirstByteTimeout", doing="it was to begin its stream"
            )
            if not chunk:
                watch.end()
                break
            first = watch.feed(chunk)
        if watch.failure and not first:
            raise AttemptFailed(*watch.failure)
        if watch.engine_error is not None and (watch.engine_status or 500) >= 500:
            raise AttemptFailed("EngineError", f"The engine reported an error: {watch.engine_error}")
        return OpenStream(
            status=status,
            headers=headers,
            first=first,
            response=response,
            watch=watch,
            idle_seconds=self.patience(self.time_outs.idle_seconds),
        )

    async def _all(self, response: UpstreamResponse) -> bytes:
        idle = self.patience(self.time_outs.idle_seconds)
        pieces: list[bytes] = []
        size = 0
        while chunk := await within(idle, response.read(), reason="IdleTimeout", doing="it was to go on"):
            pieces.append(chunk)
            size += len(chunk)
            if size > LARGEST_ANSWER:
                raise AttemptFailed(
                    "Rubbish", f"The engine's answer is larger than {LARGEST_ANSWER >> 20} MiB."
                )
        return b"".join(pieces)

    def _check(self, body: bytes) -> Usage | None:
        try:
            answer = _ANSWER.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise AttemptFailed("Rubbish", "The engine's answer is not the JSON that was expected.") from None
        if self.request.path.endswith("/completions"):
            if not answer.choices:
                raise AttemptFailed("Rubbish", "The engine's answer holds no choices.")
            if any(choice.finish_reason in (None, "abort") for choice in answer.choices):
                raise AttemptFailed(
                    "AbortedByEngine", "The engine stopped before it had finished the answer."
                )
        return read_usage(answer.usage)


def _refusal(answer: WholeAnswer) -> AttemptFailed:
    status = answer.status
    if status in (401, 403):
        return AttemptFailed(
            "EngineRefusedKey",
            "The engine refused the router's key; correct `apiKeySecretRef` of the pool's endpoint.",
            blames_instance=False,
        )
    if status >= 500:
        return AttemptFailed(
            "EngineError",
            f"The engine answered {status}.",
            retryable=status != 501,
            blames_instance=status != 501,
            answer=answer,
        )
    return AttemptFailed(
        "EngineRefused",
        f"The engine refused the call with {status}.",
        retryable=status in _ELSEWHERE,
        blames_instance=False,
        answer=answer,
    )
