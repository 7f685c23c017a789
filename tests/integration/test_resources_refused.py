"""A real API server refuses what `hexflow validate` refuses, names the same field, and says our rules in the same words (C1)."""

import json
from typing import Any

import pytest

from hexflow_api import ResourceError, load_text
from support.apiserver import ApiServer
from support.badresources import BAD, RULES_BROKEN, UNKNOWN_FIELDS, Bad
from support.definitions import served_at
from support.kubernetes import ApiError, Kubectl
from support.laptop import hexflow
from support.resources import pool_data

pytestmark = pytest.mark.usefixtures("definitions")

STRICT = {"fieldValidation": "Strict", "dryRun": "All"}


def refusal(api_server: ApiServer, data: dict[str, Any], **query: str) -> ApiError:
    with pytest.raises(ApiError) as error:
        api_server.api.create(served_at(data["kind"]), data, **(STRICT | query))
    return error.value


def ours(bad: Bad) -> list[tuple[str, str]]:
    """Return what we say of it: places and messages."""
    with pytest.raises(ResourceError) as error:
        load_text(json.dumps(bad.data), secrets_elsewhere=True)
    return [(problem.path, problem.message) for problem in error.value.problems]


@pytest.mark.parametrize("bad", BAD, ids=[f"{bad.path} {bad.words}" for bad in BAD])
def test_what_we_refuse_the_api_server_refuses_at_the_same_field(api_server: ApiServer, bad: Bad) -> None:
    refused = refusal(api_server, bad.data)
    assert refused.status == 422, refused.message
    assert f"{bad.served_path}: " in refused.message
    ((path, message),) = ours(bad)
    assert path == bad.path
    assert bad.words in message
    if bad.rule is not None:
        assert message == bad.rule.message
        assert message in refused.message


@pytest.mark.parametrize("bad", UNKNOWN_FIELDS, ids=[bad.path for bad in UNKNOWN_FIELDS])
def test_apply_refuses_a_field_that_there_is_not(api_server: ApiServer, kubectl: Kubectl, bad: Bad) -> None:
    refused = refusal(api_server, bad.data)
    assert refused.status == 400
    assert f'unknown field "{bad.path}"' in refused.message
    for options in ((), ("--server-side",)):
        applied = kubectl.run("apply", *options, "-f", "-", stdin=bad.data)
        assert applied.returncode == 1
        assert bad.path.rpartition(".")[2] in applied.stderr
    assert [path for path, _ in ours(bad)] == [bad.path]


def test_other_writes_take_an_unknown_field_out_and_warn(api_server: ApiServer) -> None:
    data = pool_data(gpuTyp="L40S")
    read = api_server.api.create(served_at("GPUPool"), data, fieldValidation="Warn", dryRun="All")
    assert read["spec"] == pool_data()["spec"]


def test_kubectl_apply_refuses_all_of_them_and_makes_nothing(kubectl: Kubectl) -> None:
    """As a person does it: one file, client side and server side."""
    objects = [bad.named(f"bad-{index}") for index, bad in enumerate(BAD)]
    for options in ((), ("--server-side",)):
        applied = kubectl.run("apply", *options, "-f", "-", stdin=objects)
        assert applied.returncode == 1
        assert applied.stdout == ""
        said = applied.stderr
        # a duplicate in a list of named things never gets as far as the rules when it is applied server side
        missing = [
            bad.rule.message
            for bad in RULES_BROKEN
            if bad.rule
            and bad.rule.message not in said
            and not (options and "of its own" in bad.rule.message)
        ]
        assert missing == []
    assert kubectl("get", "hexflow", "-o", "name") == ""


def test_hexflow_validate_refuses_all_of_them_with_the_same_words(tmp_path: Any) -> None:
    names = [f"bad-{index}" for index in range(len(BAD))]
    file = tmp_path / "bad.json"
    items = [bad.named(name) for bad, name in zip(BAD, names, strict=True)]
    file.write_text("\n---\n".join(json.dumps(item) for item in items))
    done = hexflow("validate", "--json", "-f", str(file), state_dir=tmp_path)
    assert done.code == 3
    told = {(problem["path"], problem["message"]) for problem in done.json()["problems"]}
    for bad in BAD:
        assert any(path == bad.path and bad.words in message for path, message in told), bad.path


# Rules about changes


def test_a_model_changes_only_while_its_pool_is_suspended(kubectl: Kubectl) -> None:
    other = {"name": "Qwen/Qwen2.5-Coder-7B-Instruct"}
    kubectl.apply(pool_data())
    refused = kubectl.run("apply", "-f", "-", stdin=pool_data(model=other))
    assert refused.returncode == 1
    assert "spec.model" in refused.stderr
    assert "set suspend: true first, or make a second pool" in refused.stderr
    kubectl.apply(pool_data(replicas=3))
    kubectl.apply(pool_data(suspend=True))
    kubectl.apply(pool_data(model=other))
    assert kubectl("get", "gpool", "a100", "-o", "jsonpath={.spec.model.name}") == other["name"]
    kubectl.apply(pool_data(suspend=True))
    assert kubectl("get", "gpool", "a100", "-o", "jsonpath={.spec.suspend}") == "true"
