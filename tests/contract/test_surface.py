"""Contract: the paths that probes and routers look at."""

import httpx
import pytest

from support.engines import CONTEXT


async def test_health_is_an_empty_200(client: httpx.AsyncClient) -> None:
    response = await client.get("/health")
    assert (response.status_code, response.content) == (200, b"")


async def test_the_version_is_told(client: httpx.AsyncClient) -> None:
    version = (await client.get("/version")).json()
    assert list(version) == ["version"]
    assert version["version"][0].isdigit()


async def test_the_models_name_what_is_served_and_its_context(client: httpx.AsyncClient) -> None:
    models = (await client.get("/v1/models")).json()
    assert models["object"] == "list"
    (model,) = models["data"]
    assert (model["id"], model["object"], model["max_model_len"]) == ("tiny", "model", CONTEXT)
    assert {"created", "owned_by", "root", "parent", "permission"} <= set(model)


async def test_ping_answers_like_health(client: httpx.AsyncClient) -> None:
    assert (await client.get("/ping")).status_code == 200


async def test_load_is_a_number(client: httpx.AsyncClient) -> None:
    assert (await client.get("/load")).json() == {"server_load": 0}


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/models/tiny", "/v1/embeddings"])
async def test_an_unknown_path_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert (response.status_code, response.json()) == (404, {"detail": "Not Found"})


async def test_a_wrong_method_names_the_right_one(client: httpx.AsyncClient) -> None:
    response = await client.get("/v1/chat/completions")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


async def test_a_request_id_is_echoed_and_becomes_the_answers(client: httpx.AsyncClient) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
    response = await client.post("/v1/chat/completions", json=body, headers={"x-request-id": "query-7"})
    assert response.headers["x-request-id"] == "query-7"
    assert response.json()["id"] == "chatcmpl-query-7"


async def test_a_request_without_an_id_gets_one(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health")).headers["x-request-id"]
