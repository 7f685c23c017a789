import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from hexflow_router.errors import ApiError, error_body, error_headers, install_error_handlers


class Thing(BaseModel):
    number: int


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()
    install_error_handlers(app)

    @app.post("/things")
    async def things(thing: Thing) -> dict[str, int]:
        return {"number": thing.number}

    @app.get("/busy")
    async def busy() -> None:
        raise ApiError("Too much.", status=429, code="busy", retry_after=1.2)

    @app.get("/bug")
    async def bug() -> None:
        raise RuntimeError("the password is hunter2")

    return app


async def ask(app: FastAPI, method: str, path: str, **given: Any) -> httpx.Response:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://router") as client:
        return await client.request(method, path, **given)


@pytest.mark.parametrize(
    ("method", "path", "given", "status", "code", "kind"),
    [
        ("GET", "/nowhere", {}, 404, "not_found", "not_found_error"),
        ("GET", "/things", {}, 405, "method_not_allowed", "invalid_request_error"),
        ("POST", "/things", {"json": {"number": "x"}}, 400, "invalid_request", "invalid_request_error"),
        (
            "POST",
            "/things",
            {"content": "{", "headers": {"content-type": "application/json"}},
            400,
            "invalid_json",
            "invalid_request_error",
        ),
        ("GET", "/busy", {}, 429, "busy", "rate_limit_error"),
        ("GET", "/bug", {}, 500, "internal_error", "server_error"),
    ],
)
async def test_every_error_is_an_openai_error_object(
    app: FastAPI, method: str, path: str, given: dict[str, Any], status: int, code: str, kind: str
) -> None:
    response = await ask(app, method, path, **given)
    assert response.status_code == status
    error = response.json()["error"]
    assert (error["code"], error["type"]) == (code, kind)
    assert error["message"]
    assert "hunter2" not in response.text


async def test_a_refusal_for_now_says_when_to_come_back(app: FastAPI) -> None:
    assert (await ask(app, "GET", "/busy")).headers["retry-after"] == "2"


async def test_a_wrong_method_says_which_is_right(app: FastAPI) -> None:
    assert (await ask(app, "GET", "/things")).headers["allow"] == "POST"


async def test_a_wrong_field_is_named(app: FastAPI) -> None:
    error = (await ask(app, "POST", "/things", json={"number": "x"})).json()["error"]
    assert error["param"] == "number"
    assert "number" in error["message"]


def test_a_missing_key_asks_for_one() -> None:
    assert error_headers(ApiError("?", status=401, code="api_key_missing"))["www-authenticate"] == "Bearer"


def test_the_reason_is_the_code_in_camel_case_unless_given() -> None:
    assert (
        json.loads(error_body(ApiError("?", status=404, code="model_not_found")))["error"]["reason"]
        == "ModelNotFound"
    )
