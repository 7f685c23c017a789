"""What happens to one query, as it happens: a numbered stream that any number of readers follow.

A reader that comes late, or comes back with the number it saw last, gets all that it missed. This
module knows neither queries nor HTTP servers; it only knows how server-sent events are written.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Hold one happening."""

    number: int
    """1 for the first of its stream."""
    name: str
    data: Mapping[str, Any] | msgspec.Raw
    """Plain JSON data, or JSON as it will be sent."""

    def encode(self) -> bytes:
        """Return the event as server-sent events write it."""
        data = msgspec.json.encode(self.data)
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.number, self.name.encode(), data)


KEEP_ALIVE = b": keep-alive\n\n"
"""A comment: readers ignore it, and proxies see that the connection lives."""


@dataclass(slots=True)
class EventStream:
    """Collect the events of one query and hand them to whoever follows. For one event loop."""

    _events: list[Event] = field(default_factory=list)
    _closed: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def publish(self, name: str, data: Mapping[str, Any] | msgspec.Raw) -> None:
        """Add an event; after ``close`` nothing is added any more."""
        if self._closed:
            return
        self._events.append(Event(number=len(self._events) + 1, name=name, data=data))
        self._wake()

    def close(self) -> None:
        """End the stream for its followers, once they have read what is there."""
        self._closed = True
        self._wake()

    async def follow(self, after: int = 0) -> AsyncGenerator[Event]:
        """Yield every event numbered above ``after``, past ones first, until the stream is closed."""
        at = max(0, after)
        while True:
            while at < len(self._events):
                yield self._events[at]
                at += 1
            if self._closed:
                return
            await self._news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


async def encoded(
    stream: EventStream, *, after: int = 0, keep_alive_seconds: float = 15.0
) -> AsyncGenerator[bytes]:
    """Yield the stream as server-sent events, with a comment in every silence of ``keep_alive_seconds``."""
    events = stream.follow(after)
    following: asyncio.Future[Event] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait((following,), timeout=keep_alive_seconds)
            if not done:
                yield KEEP_ALIVE
                continue
            try:
                event = following.result()
            except StopAsyncIteration:
                return
            following = None
            yield event.encode()
    finally:
        if following is not None:
            following.cancel()
