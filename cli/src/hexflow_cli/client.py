"""The router seen from outside: ask a question, follow its events, look around.

Every failure becomes a CommandError with a remedy: nothing here, not HexFlow, refused, silent, broken off.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

from hexflow_cli.exitcode import CommandError, ExitCode
from hexflow_cli.sse import EventParser, ServerEvent

_SILENCE_SECONDS = 60.0
"""The router writes a comment into every silence of 15 s; four missing ones mean that it is gone."""
_CONNECT_SECONDS = 5.0


class RouterClient:
    """Talk to the tenants' port of a router."""

    def __init__(
        self, url: str, *, api_key: str | None = None, silence_seconds: float = _SILENCE_SECONDS
    ) -> None:
        """Take the base URL and the tenant's key, where the workflow has tenants."""
        self.url = url.rstrip("/")
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._silence_seconds = silence_seconds
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=_CONNECT_SECONDS),
            connector=aiohttp.TCPConnector(limit=0),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection; the router cancels what was still asked on one."""
        await self._session.close()

    async def get(self, path: str) -> Any:
        """Return the JSON under a path."""
        try:
            async with asyncio.timeout(self._silence_seconds), self._session.get(self.url + path) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error
        if response.status >= 400:
            raise self._refused(response.status, body)
        return self._json(body)

    async def workflows(self) -> tuple[str, ...]:
        """Return the names of the workflows that are served."""
        try:
            return tuple(str(entry["name"]) for entry in (await self.get("/v1/workflows"))["workflows"])
        except (TypeError, KeyError) as error:
            raise self._refused(200, b"") from error

    async def answers(self, path: str) -> bool:
        """Return whether a path answers 200 now."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS), self._session.get(self.url + path) as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    async def ask(self, workflow: str, question: Mapping[str, Any]) -> AsyncGenerator[ServerEvent]:
        """Ask a question and yield what happens to it; the last event is `query.finished` with the answer.

        Closing the iterator early tells the router that nobody waits any more.
        """
        path = f"{self.url}/v1/workflows/{workflow}/queries"
        try:
            async with asyncio.timeout(self._silence_seconds):
                response = await self._session.post(
                    path, json={**question, "stream": True}, headers={"accept": "text/event-stream"}
                )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error
        async with response:
            if response.content_type != "text/event-stream":
                raise self._refused(response.status, await self._read(response))
            parser = EventParser()
            while piece := await self._read(response, at_most=65_536):
                for event in parser.feed(piece):
                    yield event
                    if event.name == "query.finished":
                        return
        raise CommandError(
            f"The router at {self.url} broke off before the answer. Its log says why; ask again when it is back.",
            code=ExitCode.UNREACHABLE,
            reason="StreamBroken",
        )

    async def _read(self, response: aiohttp.ClientResponse, *, at_most: int = -1) -> bytes:
        try:
            async with asyncio.timeout(self._silence_seconds):
                return await (response.read() if at_most < 0 else response.content.read(at_most))
        except TimeoutError as error:
            raise CommandError(
                f"The router at {self.url} has been silent for {self._silence_seconds:g} s; it may be stuck or "
                "stopped. Its log says more; ask again when `/healthz` answers.",
                code=ExitCode.UNREACHABLE,
                reason="RouterSilent",
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise CommandError(
                f"The connection to the router at {self.url} broke before the answer ({error}). Ask again.",
                code=ExitCode.UNREACHABLE,
                reason="StreamBroken",
            ) from error

    def _unreachable(self, error: Exception) -> CommandError:
        why = "it does not answer" if isinstance(error, TimeoutError) else _plain(error)
        return CommandError(
            f"No router at {self.url} ({why}). Start one with `hexflow up` in another shell, or name yours with "
            "--url or HEXFLOW_URL.",
            code=ExitCode.UNREACHABLE,
            reason="RouterUnreachable",
        )

    def _refused(self, status: int, body: bytes) -> CommandError:
        error = _error_object(body)
        if error is None:
            return CommandError(
                f"What answers at {self.url} is no HexFlow router (HTTP {status}). Name the right one with --url or "
                "HEXFLOW_URL.",
                code=ExitCode.UNREACHABLE,
                reason="NotARouter",
            )
        remedy = {
            401: " Give the tenant's key with --api-key or HEXFLOW_API_KEY.",
            403: " Use the key of another tenant (--tenant, --api-key), or ask for a database that this one may see.",
        }.get(status, "")
        return CommandError(
            str(error.get("message") or f"The router answered HTTP {status}.") + remedy,
            code=ExitCode.USAGE if status < 500 and status not in (408, 429) else ExitCode.UNREACHABLE,
            reason=str(error.get("code") or error.get("type") or f"Http{status}"),
        )

    def _json(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except ValueError as error:
            raise self._refused(200, b"") from error


def _error_object(body: bytes) -> Mapping[str, Any] | None:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return error if isinstance(error, dict) else None


def _plain(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        number, words = error.os_error.errno, error.os_error.strerror
        return (os.strerror(number) if number and number > 0 else words or str(error.os_error)).lower()
    return str(error) or type(error).__name__
