"""The custom resources on a test Kubernetes: the fixture that defines them, and where they are served."""

from functools import partial
from pathlib import Path

import pytest
import yaml

from support.apiserver import ApiServer
from support.kubernetes import Api, ApiError, Object
from support.waiting import until

FILES = sorted((Path(__file__).parents[2] / "crds").glob("*.hexflow.dev.yaml"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLURALS = {"GPUPool": "gpupools", "TextToSQLWorkflow": "texttosqlworkflows"}


def served_at(kind: str, *, namespace: str = "default") -> str:
    """Return the API's path of the resources of a kind in a namespace."""
    return f"/apis/hexflow.dev/v1alpha1/namespaces/{namespace}/{PLURALS[kind]}"


def define(api: Api) -> None:
    """Apply the definitions as they are committed, and wait until they are served."""
    for file in FILES:
        definition: Object = yaml.safe_load(file.read_text(encoding="utf-8"))
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        api.patch(path, definition, kind="apply", fieldManager="tests", force="true")
    for kind in PLURALS:
        until(partial(_served, api, kind), seconds=30)


def _served(api: Api, kind: str) -> bool:
    try:
        api.items(served_at(kind))
    except ApiError as error:
        if error.status in (404, 429):  # not there yet, or being set up
            return False
        raise
    return True


@pytest.fixture(scope="session")
def definitions(api_server: ApiServer) -> None:
    """Define GPUPool and TextToSQLWorkflow on the session's API server."""
    define(api_server.api)
