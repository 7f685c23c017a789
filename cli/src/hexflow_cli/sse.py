"""Server-sent events, read from bytes as they come (HTML Living Standard, section 9.2)."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """Hold one event of a stream."""

    name: str
    data: str


@dataclass(slots=True)
class EventParser:
    """Turn pieces of a stream into events, wherever the pieces were cut."""

    _pending: bytes = b""
    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Take the next bytes and yield the events that they complete."""
        *lines, self._pending = (self._pending + piece).split(b"\n")
        for line in lines:
            event = self._line(line.removesuffix(b"\r").decode("utf-8", errors="replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            event = (
                ServerEvent(name=self._name or "message", data="\n".join(self._data)) if self._data else None
            )
            self._name, self._data = "", []
            return event
        field_name, _, value = line.partition(":")  # a comment has an empty field name
        value = value.removeprefix(" ")
        if field_name == "event":
            self._name = value
        elif field_name == "data":
            self._data.append(value)
        return None
