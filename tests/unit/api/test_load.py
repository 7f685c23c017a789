"""Wrong files, each with one readable message that names the file, the line and the remedy."""

import base64
import json
from pathlib import Path

import pytest

from hexflow_api import ResourceError, load_resources, load_text, parse_resource
from hexflow_api.policy import POLICY_WORDS
from support.resources import pool_data, workflow_data

POOL = """\
apiVersion: hexflow.dev/v1alpha1
kind: GPUPool
metadata:
  name: a100
spec:
  gpuType: A100-80GB
  model:
    name: Qwen/Qwen2.5-Coder-32B-Instruct
  tensorParallelSize: 2
  emulated: true
"""
WORKFLOW = """\
apiVersion: hexflow.dev/v1alpha1
kind: TextToSQLWorkflow
metadata:
  name: shop-questions
spec:
  pools:
    names: [a100]
  databases:
    - name: shop
      dialect: sqlite
      dsnSecretRef: {name: shop, key: dsn}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata:
  name: shop
stringData:
  dsn: sqlite:///shop.sqlite
"""


def said(text: str) -> str:
    """Return the message of the one problem of ``text``."""
    with pytest.raises(ResourceError) as error:
        load_text(text, name="f.yaml")
    assert len(error.value.problems) == 1, str(error.value)
    return str(error.value)


def all_of(*documents: str) -> str:
    return "---\n".join(documents)


def test_a_folder_of_several_files_and_documents_is_read(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(all_of(POOL, WORKFLOW))
    (tmp_path / "a.yml").write_text(SECRET)
    (tmp_path / "README.md").write_text("not YAML: [")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "c.yaml").write_text("not: [read")
    resources = load_resources(tmp_path)
    assert [path.name for path in resources.sources] == ["a.yml", "b.yaml"]
    assert [pool.name for pool in resources.pools] == ["a100"]
    assert [workflow.name for workflow in resources.workflows] == ["shop-questions"]
    assert resources.secrets[0].folder == tmp_path.resolve()


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(all_of(POOL, WORKFLOW, SECRET))
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    assert len(load_resources([tmp_path, tmp_path / "a.yaml", str(tmp_path)]).pools) == 1


def test_a_list_is_as_good_as_its_items() -> None:
    items = [pool_data(emulated=True), {"apiVersion": "v1", "kind": "List", "items": [pool_data("b")]}]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    assert [pool.name for pool in load_text(text).pools] == ["a100", "b"]


def test_objects_of_other_kinds_are_passed_over_with_a_note() -> None:
    resources = load_text(all_of("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", POOL))
    assert resources.notes == ("<text>:1: passed over a Deployment (apps/v1)",)


def test_secrets_may_be_encoded_or_plain_and_plain_wins() -> None:
    encoded = base64.b64encode(b"s3cret").decode()
    text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\ndata: {{a: {encoded}, b: {encoded}}}\nstringData: {{b: plain}}\n"
    secret = load_text(all_of(POOL, text)).secret("s")
    assert secret is not None
    assert secret.data == {"a": "s3cret", "b": "plain"}
    assert "s3cret" not in repr(secret)


def test_secrets_may_be_elsewhere_in_a_cluster() -> None:
    assert load_text(all_of(POOL, WORKFLOW), secrets_elsewhere=True).workflows


# What is wrong with a file as such


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(ResourceError, match=r"^nowhere\.yaml: there is no such file or folder$"):
        load_resources("nowhere.yaml")


def test_a_folder_without_yaml(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=r"this folder holds no \.yaml file"):
        load_resources(tmp_path)


def test_a_file_without_resources_of_ours() -> None:
    assert "there is no GPUPool and no TextToSQLWorkflow" in said("# nothing\n")


def test_a_file_of_more_than_three_megabytes(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text("#" * (3 * 1024 * 1024 + 1))
    with pytest.raises(ResourceError, match=r"big\.yaml: is larger than 3 MB"):
        load_resources(tmp_path)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"a: 1\nb: \xff\xfe\n")
    with pytest.raises(ResourceError, match=r"a\.yaml:2: is not UTF-8 text \(byte 8\); save it as UTF-8"):
        load_resources(tmp_path)


def test_a_file_with_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbf" + POOL.encode())
    assert load_resources(tmp_path).pools


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("a.yaml")
    with pytest.raises(ResourceError, match=r"a\.yaml"):
        load_resources(tmp_path / "a.yaml")


def test_yaml_that_is_none() -> None:
    assert said("a: [1,\nb: }\n").startswith("f.yaml:2: not YAML: ")


def test_a_tab_as_indentation() -> None:
    assert "line holds a tab; indent with spaces" in said("a:\n\tb: 1\n")


def test_a_key_given_twice() -> None:
    assert said(POOL + "  emulated: true\n") == (
        "f.yaml:11: spec.emulated: 'emulated' is given twice; keep one of the two"
    )


def test_documents_before_a_broken_one_are_still_checked() -> None:
    with pytest.raises(ResourceError) as error:
        load_text(all_of(POOL.replace("gpuType", "gpuTyp"), "a: ["))
    assert len(error.value.problems) == 2


def test_a_document_that_is_no_object() -> None:
    assert said("- a\n- b\n").startswith("f.yaml:1: is no resource; one begins with apiVersion, kind")


# What is wrong with an object as such


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            POOL.replace("apiVersion: hexflow.dev/v1alpha1\n", ""),
            "f.yaml:1: 'apiVersion' is missing: write hexflow.dev/v1alpha1",
        ),
        (POOL.replace("kind: GPUPool\n", ""), "f.yaml:1: 'kind' is missing"),
        (
            POOL.replace("v1alpha1", "v1"),
            "f.yaml:1: GPUPool: apiVersion: must be hexflow.dev/v1alpha1, not 'hexflow.dev/v1'",
        ),
        (
            POOL.replace("GPUPool", "GpuPool"),
            "f.yaml:2: kind: must be GPUPool or TextToSQLWorkflow, not 'GpuPool'; did you mean 'GPUPool'?",
        ),
        (
            POOL.replace("gpuType", "gpuTyp"),
            "f.yaml:6: GPUPool a100: spec.gpuTyp: there is no such field; did you mean 'gpuType'?",
        ),
        (
            POOL.replace("gpuType", "gpu_type"),
            "f.yaml:6: GPUPool a100: spec.gpu_type: there is no such field; did you mean 'gpuType'?",
        ),
        (
            POOL.replace("  gpuType: A100-80GB\n", ""),
            "f.yaml:5: GPUPool a100: spec.gpuType: is missing: Type of GPU, such as A100-80GB, L40S or A6000; the key of the speed profile",
        ),
        (
            POOL + "  replicas: -1\n",
            "f.yaml:11: GPUPool a100: spec.replicas: must be at least 0, not -1",
        ),
        (
            POOL + "  replicas: '2'\n",
            "f.yaml:11: GPUPool a100: spec.replicas: must be a whole number, not '2'; write it without quotes",
        ),
        (
            POOL + "  maxNumSeqs: .inf\n",
            "f.yaml:11: spec.maxNumSeqs: must be a finite number",
        ),
        (
            POOL.replace("A100-80GB", "100"),
            "f.yaml:6: GPUPool a100: spec.gpuType: must be text, not 100; put it in quotes",
        ),
        (
            POOL.replace("name: a100", "name: A_100"),
            "f.yaml:4: GPUPool A_100: metadata.name: may hold lower-case letters, digits, '-' and '.', and begins and ends with a letter or digit, unlike 'A_100'",
        ),
        (
            POOL.replace("name: a100", f"name: {'a' * 41}"),
            f"f.yaml:4: GPUPool {'a' * 41}: metadata.name: a name has at most 40 characters and no dot, for other objects are named after it; choose another",
        ),
        (
            POOL.replace("  name: a100\n", "  {}\n"),
            "f.yaml:3: GPUPool: metadata.name: is missing",
        ),
        (
            all_of(POOL, WORKFLOW + "  deadlineSeconds: 5\n", SECRET),
            "f.yaml:23: TextToSQLWorkflow shop-questions: spec.deadlineSeconds: there is no such field here; it belongs at spec.slo.deadlineSeconds",
        ),
        (
            all_of(POOL, WORKFLOW + "  slo: {deadlineSeconds: -5}\n", SECRET),
            "f.yaml:23: TextToSQLWorkflow shop-questions: spec.slo.deadlineSeconds: must be at least 1, not -5",
        ),
        (
            all_of(POOL, WORKFLOW.replace("sqlite", "oracle"), SECRET),
            "f.yaml:21: TextToSQLWorkflow shop-questions: spec.databases[0].dialect: must be sqlite, not 'oracle'",
        ),
        (
            all_of(POOL, WORKFLOW + "  scheduling: {policy: HexgenFlow+Urgent}\n", SECRET),
            "f.yaml:23: TextToSQLWorkflow shop-questions: spec.scheduling.policy: "
            f"{POLICY_WORDS}, not 'HexgenFlow+Urgent'; did you mean 'HexGenFlow+Urgency'?",
        ),
        (
            all_of(
                POOL,
                WORKFLOW
                + "  stages:\n    - {name: a, kind: CandidateGeneration, after: [b]}\n    - {name: b, kind: SchemaLinking}\n",
                SECRET,
            ),
            "f.yaml:24: TextToSQLWorkflow shop-questions: spec.stages[0].after[0]: after must name stages that are listed"
            " earlier; move this stage down or correct the name",
        ),
        (
            all_of(POOL, POOL),
            "f.yaml:15: GPUPool a100: metadata.name: there are two GPUPools of this name, the other at f.yaml:1; rename or remove one",
        ),
    ],
    ids=lambda value: value.partition(": ")[2][:60] if value.startswith("f.yaml") else "",
)
def test_one_mistake_gets_one_message(text: str, message: str) -> None:
    assert said(text) == message


def test_two_objects_of_one_name_in_two_namespaces_are_two() -> None:
    other = POOL.replace("name: a100", "name: a100\n  namespace: other")
    assert len(load_text(all_of(POOL, other)).pools) == 2


def test_a_field_without_value_is_as_good_as_none() -> None:
    assert load_text(POOL + "  replicas:\n  maxModelLen: null\n").pools[0].spec.replicas is None


def test_bare_yes_and_on_are_booleans_as_in_kubectl() -> None:
    assert load_text(POOL.replace("emulated: true", "emulated: yes")).pools[0].spec.emulated
    assert said(POOL.replace("A100-80GB", "on")) == (
        "f.yaml:6: GPUPool a100: spec.gpuType: must be text, not the boolean true; put it in quotes"
    )


def test_a_bare_off_is_told_to_want_quotes(tmp_path: Path) -> None:
    bare, quoted = (WORKFLOW + f"  tuning: {{mode: {word}}}\n" for word in ("Off", '"Off"'))
    assert said(all_of(POOL, bare)).endswith(
        "spec.tuning.mode: must be one of Off, Recommend, Auto, not the boolean false; "
        'without quotes Off is a boolean in kubectl\'s YAML, so write "Off"'
    )
    tuning = load_text(all_of(POOL, SECRET, quoted)).workflows[0].spec.tuning
    assert tuning is not None
    assert tuning.mode == "Off"


def test_a_word_in_the_place_of_a_group_is_answered_with_the_groups_fields() -> None:
    assert said(POOL.replace("emulated: true", "endpoints: [http://h:1]")) == (
        "f.yaml:10: GPUPool a100: spec.endpoints[0]: must be a group of fields (url, apiKeySecretRef, caSecretRef), "
        "not text"
    )


@pytest.mark.parametrize(
    "spec", ["endpoints: [http://bob:s3cret@h:1]", "endpoints: [{url: http://h:1, apiKeySecretRef: s3cret}]"]
)
def test_what_may_be_a_secret_in_the_place_of_a_group_is_not_repeated(spec: str) -> None:
    assert "s3cret" not in said(POOL.replace("emulated: true", spec))


def test_everything_wrong_is_told_at_once_in_the_order_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POOL + "  replicas: -1\n  prefixCaching: 3\n")
    (tmp_path / "b.yaml").write_text(WORKFLOW.replace("dialect", "dialekt"))
    with pytest.raises(ResourceError) as error:
        load_resources(tmp_path)
    places = [(Path(problem.file).name, problem.line) for problem in error.value.problems]
    assert places == [("a.yaml", 11), ("a.yaml", 12), ("b.yaml", 10)]
    assert str(error.value).startswith("3 problems:\n  ")


def test_a_value_of_a_secret_is_never_shown() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: hunter2!}\n"
    message = said(all_of(POOL, text))
    assert "Secret s: data.k: must be UTF-8 text in base64; or write it plainly under stringData" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("key", ["..", "../../etc/passwd", "a b", "..data"])
def test_a_key_that_would_leave_its_folder_is_refused(key: str) -> None:
    text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{'{key}': x}}\n"
    assert "a key may hold letters, digits" in said(all_of(POOL, text))


def test_a_secrets_name_that_would_leave_its_folder_is_refused() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: ../s}\nstringData: {k: x}\n"
    assert "metadata.name" in said(all_of(POOL, text))


def test_what_a_terminal_would_obey_is_written_out() -> None:
    message = said(POOL + '  "\\e[2Jx\\n": 1\n')
    assert "\x1b" not in message
    assert "\n" not in message


def test_one_object_of_the_api_server_is_parsed_as_a_file_is() -> None:
    assert parse_resource(pool_data()).metadata.name == "a100"
    with pytest.raises(ResourceError, match="did you mean 'databases'"):
        parse_resource(workflow_data(database=[]))
    with pytest.raises(ResourceError, match="must be a GPUPool or a TextToSQLWorkflow"):
        parse_resource({"apiVersion": "v1", "kind": "Pod"})
