"""What the router answers when it cannot do what was asked: one kind of error, in OpenAI's form.

Both front doors and FastAPI's own refusals come out alike, so that an OpenAI client understands every one
of them. Nothing of the inside (a traceback, an address, a credential) may get into a message.
"""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

DEFECT: Final = "The router failed; this is a defect and its log has the details."
STOPPING: Final = "The router is stopping; ask again in a moment, another takes over."
STOPPING_SECONDS: Final = 5.0
"""When to ask again of a router that stops."""


class ApiError(Exception):
    """Say that a request cannot be served: status, machine-readable words, and a sentence with the remedy."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        reason: str = "",
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Keep ``code`` in OpenAI's snake_case, ``reason`` in CamelCase; ``retry_after`` is in seconds."""
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.reason = reason or "".join(word.capitalize() for word in code.split("_"))
        self.param = param
        self.retry_after = retry_after


STATUS_OF_REASON: Final = {
    "NoInstance": 503,
    "NoInstanceInTime": 503,
    "QueueFull": 503,
    "Stopping": 503,
    "Interrupted": 503,
    "DatabaseUnavailable": 503,
    "ConnectFailed": 502,
    "BrokenAnswer": 502,
    "AbortedByEngine": 502,
    "Rubbish": 502,
    "Redirected": 502,
    "EngineError": 502,
    "EngineRefused": 502,
    "EngineRefusedKey": 502,
    "FirstByteTimeout": 504,
    "IdleTimeout": 504,
    "TotalTimeout": 504,
    "StageTimedOut": 504,
    "InternalError": 500,
}
"""HTTP status of a query that failed for a reason, and of a call; every other reason is the question's own: 422."""


def error_type(status: int) -> str:
    """Return OpenAI's ``type`` for a status."""
    match status:
        case 401:
            return "authentication_error"
        case 403:
            return "permission_error"
        case 404:
            return "not_found_error"
        case 429:
            return "rate_limit_error"
        case _ if status < 500:
            return "invalid_request_error"
        case 503:
            return "service_unavailable_error"
        case _:
            return "server_error"


def error_object(error: ApiError) -> dict[str, Any]:
    """Return the object that stands under ``error`` in an answer and in a stream's error event."""
    return {
        "message": error.message,
        "type": error_type(error.status),
        "param": error.param,
        "code": error.code,
        "reason": error.reason,
    }


def error_body(error: ApiError) -> bytes:
    """Return the JSON body of an error answer."""
    return msgspec.json.encode({"error": error_object(error)})


def error_headers(error: ApiError) -> dict[str, str]:
    """Return the headers of an error answer (``Retry-After`` in whole seconds, rounded up)."""
    headers = {"content-type": "application/json"}
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after)))
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    return headers


def internal_error() -> ApiError:
    """Return what a client is told of a defect."""
    return ApiError(DEFECT, status=500, code="internal_error")


def error_response(error: ApiError, *, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer for an error, with further ``headers`` where given."""
    return Response(
        error_body(error), status_code=error.status, headers={**error_headers(error), **(headers or {})}
    )


def _of_http(problem: HTTPException) -> ApiError:
    status = HTTPStatus(problem.status_code)
    code = {
        HTTPStatus.NOT_FOUND: "not_found",
        HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    }.get(status, status.name.lower())
    message = str(problem.detail)
    if status == HTTPStatus.NOT_FOUND and message == status.phrase:
        message = "There is nothing at this path; /openapi.json lists what there is."
    if status == HTTPStatus.METHOD_NOT_ALLOWED and message == status.phrase:
        message = "This path does not take this method; /openapi.json lists what there is."
    return ApiError(message, status=problem.status_code, code=code)


def _of_validation(problem: RequestValidationError) -> ApiError:
    lines: list[str] = []
    param: str | None = None
    for fault in problem.errors():
        place = ".".join(
            str(part) for part in fault["loc"] if part not in {"body", "query", "path", "header"}
        )
        param = param or place or None
        if fault["type"] == "json_invalid":
            reason = (fault.get("ctx") or {}).get("error", "it cannot be parsed")
            return ApiError(f"The body is not valid JSON: {reason}.", status=400, code="invalid_json")
        lines.append(f"{place or 'the body'}: {fault['msg']}")
    return ApiError(
        "The request does not fit: " + "; ".join(lines[:5]) + ".",
        status=400,
        code="invalid_request",
        param=param,
    )


def install_error_handlers(app: FastAPI) -> None:
    """Make every error of a FastAPI app, its own 404, 405 and validation included, an OpenAI error object."""

    async def on_api_error(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, ApiError)  # noqa: S101 - registered for this class alone
        return error_response(problem)

    async def on_http(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, HTTPException)  # noqa: S101
        kept = {
            name: value for name, value in (problem.headers or {}).items() if name.lower() != "content-type"
        }
        return error_response(_of_http(problem), headers=kept)

    async def on_validation(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, RequestValidationError)  # noqa: S101
        return error_response(_of_validation(problem))

    async def on_bug(_: Request, problem: Exception) -> Response:
        return error_response(internal_error())

    app.add_exception_handler(ApiError, on_api_error)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(Exception, on_bug)
