"""A language model made of functions: what a test wants said, when it wants it said."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from hexflow_sql import Completion, CompletionError, CompletionRequest, messages

Said = str | Completion | CompletionError
Answer = Callable[[CompletionRequest], Said | Awaitable[Said]]


class ScriptedModel:
    """Answer each task from a script and keep what was asked.

    A script is a text, a list of texts (picked by the request's seed; corrections by their round), or a
    function of the request that may be a coroutine.
    """

    def __init__(self, script: Mapping[str, str | Sequence[str] | Answer]) -> None:
        self._script = script
        self.requests: list[CompletionRequest] = []
        self.withdrawn: list[CompletionRequest] = []

    def release(self, requests: Sequence[CompletionRequest], /) -> Sequence[Awaitable[Completion]]:
        """Start all requests."""
        self.requests.extend(requests)
        return [asyncio.ensure_future(self._answer(request)) for request in requests]

    def asked(self, task: str) -> list[CompletionRequest]:
        """List the requests of one task."""
        return [request for request in self.requests if request.task == task]

    async def _answer(self, request: CompletionRequest) -> Completion:
        try:
            await asyncio.sleep(0)
            script = self._script.get(request.task, "")
            if callable(script):
                said = script(request)
                if isinstance(said, Awaitable):
                    said = await said
            elif isinstance(script, str):
                said = script
            else:
                place = request.round if request.task == "correction" else request.seed or 0
                said = script[place % len(script)]
        except asyncio.CancelledError:
            self.withdrawn.append(request)
            raise
        if isinstance(said, CompletionError):
            raise said
        if isinstance(said, Completion):
            return said
        return a_completion(said)


def a_completion(*texts: str, finish_reason: str = "stop") -> Completion:
    """Build a completion."""
    return Completion(
        texts=texts,
        finish_reasons=tuple(finish_reason for _ in texts),
        prompt_tokens=100,
        output_tokens=10 * len(texts),
    )


def text_of(request: CompletionRequest) -> str:
    """Write the whole prompt of a request as one text."""
    return "\n".join(message["content"] for message in messages(request.blocks))


def fenced(sql: str) -> str:
    """Write a statement as models do."""
    return f"First the tables, then the join.\n```sql\n{sql}\n```\n"
