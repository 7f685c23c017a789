"""What the API server was asked, by whom, and what it answered: its audit log, a JSON line for each request.

The control plane's own requests, the fake kubelet's and those of the fixtures are not in it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request that was answered; a watch is one when it began."""

    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: str
    """Who asked; of an impersonated request, who it was asked as."""
    agent: str
    status: int
    """The HTTP status of the answer."""
    time: str
    """When it was received: RFC 3339 with microseconds, in UTC."""
    path: str
    """With the query."""

    @property
    def writes(self) -> bool:
        """Tell whether it was meant to change something."""
        return self.verb in WRITES

    @property
    def right(self) -> tuple[str, str, str]:
        """Return what RBAC must grant for it: verb, API group, resource or resource/subresource."""
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return self.verb, self.group, resource


class AuditLog:
    """Read the log from a point in time on."""

    def __init__(self, file: Path, *, offset: int = 0) -> None:
        self._file = file
        self._offset = offset

    def from_now_on(self) -> "AuditLog":
        """Return the part that is still to come."""
        return AuditLog(self._file, offset=self._file.stat().st_size if self._file.exists() else 0)

    def requests(
        self,
        *,
        user: str | None = None,
        namespace: str | None = None,
        resource: str | None = None,
        verb: str | None = None,
    ) -> list[Request]:
        """Return the requests so far, those of one user, namespace, resource (plural) or verb."""
        return [
            request
            for request in self._read()
            if user in (None, request.user)
            and namespace in (None, request.namespace)
            and resource in (None, request.resource)
            and verb in (None, request.verb)
        ]

    def writes(self, *, user: str | None = None, namespace: str | None = None) -> list[Request]:
        """Return the requests that were meant to change something."""
        return [request for request in self.requests(user=user, namespace=namespace) if request.writes]

    def _read(self) -> Iterator[Request]:
        with self._file.open("rb") as log:
            log.seek(self._offset)
            for line in log:
                if not line.endswith(b"\n"):
                    return  # it is being written
                event = json.loads(line)
                if event["verb"] != "watch" or event["stage"] == "ResponseStarted":
                    yield _request(event)


def _request(event: dict[str, Any]) -> Request:
    about = event.get("objectRef", {})
    return Request(
        verb=event["verb"],
        group=about.get("apiGroup", ""),
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        user=event.get("impersonatedUser", event["user"]).get("username", ""),
        agent=event.get("userAgent", ""),
        status=event.get("responseStatus", {}).get("code", 0),
        time=event["requestReceivedTimestamp"],
        path=event["requestURI"],
    )
