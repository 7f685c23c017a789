"""What may go wrong between us and the Kubernetes API, one class for each thing that a caller does differently.

Made from answers and failures of the transport in one place, so that nobody else reads status codes. Knows no HTTP
library.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any


class ClusterError(Exception):
    """A request to the Kubernetes API failed; the text is the API server's own where it gave one."""

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; 0 where there was no answer."""
        self.reason = reason
        """The API server's CamelCase word, such as AlreadyExists."""
        self.retry_after = retry_after
        """Seconds that the API server asks to wait."""


class NotFound(ClusterError):
    """There is no such object."""


class KindUnknown(NotFound):
    """The API server has no such kind: its CustomResourceDefinition is not there."""


class Conflict(ClusterError):
    """The object is there already, is another one than was meant, or has changed since it was read."""


class Forbidden(ClusterError):
    """Our rights, an admission webhook or a quota do not allow it."""


class Terminating(Forbidden):
    """The namespace is being deleted; nothing can be made in it any more."""


class Unauthorized(ClusterError):
    """The API server does not know who we are."""


class Gone(ClusterError):
    """The resource version is too old to go on from; list again."""


class Invalid(ClusterError):
    """The API server does not accept the object as it is; trying again is of no use."""


class Busy(ClusterError):
    """The API server asks us to slow down."""


class Unavailable(ClusterError):
    """No answer, or one that says the fault is not ours: connection, time-out, 5xx."""


_BY_STATUS = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: Busy,
}


def error_of(status: int, body: str | bytes | None, headers: Mapping[str, str] | None = None) -> ClusterError:
    """Return the error that an answer with a bad status stands for."""
    said = _status_object(body)
    details = said.get("details") or {}
    retry_after = (headers or {}).get("Retry-After") or details.get("retryAfterSeconds")
    message = str(said.get("message") or f"the API server answered {status}")
    causes = details.get("causes") or ()
    return _class_of(status, message, causes)(
        message,
        status=status,
        reason=str(said.get("reason") or ""),
        retry_after=_seconds(retry_after),
    )


def _class_of(status: int, message: str, causes: Iterable[Mapping[str, Any]]) -> type[ClusterError]:
    if status == 403 and any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return Terminating
    if status == 422 and any(cause.get("field") == "metadata.uid" for cause in causes):
        return (
            Conflict  # the uid of an applied manifest is a precondition, and it says so as if it were a field
        )
    if status == 500 and message.startswith("failed to create typed patch object"):
        return Invalid  # a field that the kind does not have, in a server-side apply
    return _BY_STATUS.get(status) or (Unavailable if status >= 500 else ClusterError)


def _status_object(body: str | bytes | None) -> dict[str, Any]:
    try:
        said = json.loads(body or "")
    except ValueError:
        text = body.decode(errors="replace") if isinstance(body, bytes) else body
        return {"message": text.strip()[:500]} if text else {}
    return said if isinstance(said, dict) else {}


def _seconds(value: Any) -> float | None:
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):  # a date is allowed too; then our own backoff decides
        return None
