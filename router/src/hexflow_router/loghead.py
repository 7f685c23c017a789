"""The head of an event log: what must stand before the newest part for it to be read once the rest is deleted.

That is its start, the instances there are and the parameters in force. Lines of a head say that they only continue an
earlier log (``"continued":true``), and its start has the instant from which on the log is whole: whatever began before
is not all there. Such a log can be learned from, but not replayed decision by decision.
"""

import json
import re
from typing import Any, Final

CONTINUED: Final = ',"continued":true}'
"""How a line of a head ends."""
_LINE: Final = re.compile(r'\{"v":\d+,"n":\d+,"t":([^,]+),"input":"(\w+)"')


def what(line: str) -> tuple[str, float]:
    """Return the input and the instant of a line; an empty name for what is no record."""
    found = _LINE.match(line)
    return (found[2], float(found[1])) if found else ("", 0.0)


class LogHead:
    """Follow a log line by line."""

    def __init__(self) -> None:
        self._start: dict[str, Any] | None = None
        self._told: dict[str, dict[str, Any]] = {}
        """Records that are still so: an instance's last one, a workflow's parameters."""
        self._at = 0.0

    def note(self, line: str) -> None:
        """Follow one more line."""
        name, at = what(line)
        if not name:
            return
        self._at = max(self._at, at)
        if name == "start":
            self._start, self._told = json.loads(line), {}
        elif name in ("instance", "parameters"):
            record = json.loads(line) | {"decisions": []}
            given = record["with"]
            key = (
                f"instance {given['instance']['instanceId']}"
                if name == "instance"
                else f"parameters {given['workflow']}"
            )
            self._told.pop(key, None)
            if name == "parameters" or given["instance"].get("state") != "Gone":
                self._told[key] = record

    def lines(self) -> list[str]:
        """Return the head as it is now; nothing before a start."""
        if self._start is None:
            return []
        records = [self._start | {"t": self._at}, *self._told.values()]
        return [
            json.dumps(record, ensure_ascii=False, separators=(",", ":"))[:-1] + CONTINUED
            for record in records
        ]
