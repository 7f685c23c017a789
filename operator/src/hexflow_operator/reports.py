"""What the routers say of themselves, asked at most once a minute each and passed on only when it changed."""

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

from hexflow_operator.observed import RouterReport

_log = logging.getLogger("hexflow.operator.reports")

MISSES_BEFORE_SILENT: Final = 3
"""A router that does not answer so often in a row says nothing any more; once alone may be a restart."""
AT_A_TIME: Final = 16

Fetch = Callable[[str], Awaitable[Mapping[str, Any]]]
"""From a namespace to what its router answers. Raises OSError or ValueError where it does not, or not JSON."""


class Reports:
    """Hold what the router of each namespace said last."""

    def __init__(
        self,
        fetch: Fetch,
        *,
        namespaces: Callable[[], Collection[str]],
        changed: Callable[[str], None],
        now: Callable[[], float],
        every_seconds: float = 60.0,
    ) -> None:
        """``changed`` is called with a namespace whose router says something else, or nothing any more."""
        self._fetch, self._namespaces, self._changed, self._now = fetch, namespaces, changed, now
        self._every = every_seconds
        self.said: dict[str, RouterReport] = {}
        """By namespace."""
        self._misses: dict[str, int] = {}

    async def run(self) -> None:
        """Ask every router once in a while, for ever."""
        while True:
            await asyncio.sleep(self._every * random.uniform(0.9, 1.1))  # noqa: S311
            await self.ask_all()

    async def ask_all(self) -> None:
        """Ask every router once."""
        namespaces = self._namespaces()
        for namespace in {*self.said, *self._misses}.difference(namespaces):
            self.said.pop(namespace, None)
            self._misses.pop(namespace, None)
        turns = asyncio.Semaphore(AT_A_TIME)

        async def one(namespace: str) -> None:
            async with turns:
                await self._ask(namespace)

        await asyncio.gather(*(one(namespace) for namespace in namespaces))

    async def _ask(self, namespace: str) -> None:
        known = self.said.get(namespace)
        try:
            content = await self._fetch(namespace)
        except (OSError, TimeoutError, ValueError) as error:
            misses = self._misses[namespace] = self._misses.get(namespace, 0) + 1
            _log.debug("the router of %s does not answer: %s", namespace, error)
            if known is not None and misses >= MISSES_BEFORE_SILENT:
                del self.said[namespace]
                self._changed(namespace)
            return
        self._misses.pop(namespace, None)
        self.said[namespace] = RouterReport(at=self._now(), content=content)
        if known is None or _text(known.content) != _text(content):
            self._changed(namespace)


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True)
