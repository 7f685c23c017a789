"""Resources as `hexflow up` and `hexflow validate` take and follow them: engines by URL, edits, mistakes (A2, A4)."""

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import openai
import pytest
from aiohttp import web

from support.laptop import a_running_laptop, copy_examples, hexflow

MODEL = "Qwen/Qwen2.5-Coder-32B-Instruct"
KEY = "hexflow-support-demo"
BERLIN = "How many customers live in Berlin?"


@dataclass(slots=True)
class RecordingEngine:
    """An engine that is no emulator: it remembers the bodies it gets and calls a tool."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def chat(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        call = {
            "id": "c1",
            "type": "function",
            "function": {"name": "run_sql", "arguments": '{"sql": "SELECT 1"}'},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return web.json_response(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 1,
                "model": MODEL,
                "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
                "engine_extra": {"kept": True},
            }
        )


@asynccontextmanager
async def a_recording_engine() -> AsyncIterator[RecordingEngine]:
    engine = RecordingEngine()
    app = web.Application()
    app.router.add_get("/v1/models", engine.models)
    app.router.add_post("/v1/chat/completions", engine.chat)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield engine
    finally:
        await runner.cleanup()


async def test_an_engine_takes_the_place_of_the_emulated_ones_by_editing_one_file(tmp_path: Path) -> None:
    """And a tool-call body passes through unchanged, in both directions."""
    examples = copy_examples(tmp_path / "laptop")
    pools = examples / "pools.yaml"
    body = (
        b'{ "model":"%s",  "tools":[{"type":"function","function":{"name":"run_sql","parameters":{"type":"object",'
        b'"properties":{"sql":{"type":"string"}}}}}], "tool_choice":"auto", "temperature":1.50,'
        b'"messages":[{"role":"user","content":"caf\\u00e9"}], "unknown_field":[1e2, null] }' % MODEL.encode()
    )

    def start_edit_and_call(
        engine: RecordingEngine,
    ) -> tuple[dict[str, object], openai.types.chat.ChatCompletion]:
        with a_running_laptop(tmp_path, files=[examples]) as laptop:
            assert laptop.hexflow("ask", "--json", BERLIN).json()["rows"] == [[98]]
            assert len(laptop.instances()) == 3
            only_one = pools.read_text().split("\n---\n")[0]
            engine_instead = f"\n  endpoints: [{{url: {engine.url}}}]\n  priorityScheduling: false"
            pools.write_text(only_one.replace("\n  emulated: true", engine_instead))
            _until_instances(laptop.instances, 0)
            _until(lambda: _post(laptop.url, body).get("engine_extra") == {"kept": True})
            engine.bodies.clear()
            raw = _post(laptop.url, body)
            with openai.OpenAI(base_url=laptop.url + "/v1", api_key=KEY, max_retries=0) as client:
                chat = client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": "?"}]
                )
            return raw, chat

    async with a_recording_engine() as engine:
        raw, chat = await asyncio.to_thread(start_edit_and_call, engine)
        assert engine.bodies[0] == body
    assert raw["engine_extra"] == {"kept": True}
    assert chat.choices[0].message.tool_calls is not None
    assert chat.choices[0].message.tool_calls[0].function.name == "run_sql"  # type: ignore[union-attr]


def test_an_edit_that_is_wrong_is_told_and_the_last_good_resources_stay(tmp_path: Path) -> None:
    examples = copy_examples(tmp_path / "laptop")
    with a_running_laptop(tmp_path, files=[examples]) as laptop:
        pools = examples / "pools.yaml"
        pools.write_text(pools.read_text().replace("gpuType: L40S", "gpuTyp: L40S"))
        _until(lambda: "the last good ones stay in force" in laptop.log.read_text())
        assert "gpuTyp" in laptop.log.read_text()
        assert laptop.hexflow("ask", "--json", BERLIN).json()["rows"] == [[98]]
        pools.write_text(
            pools.read_text().replace("gpuTyp: L40S", "gpuType: L40S").replace("replicas: 1", "replicas: 2")
        )
        _until_instances(laptop.instances, 6)
        workflow = examples / "workflow.yaml"
        workflow.write_text(workflow.read_text().replace("name: shop-questions", "name: renamed"))
        _until(lambda: laptop.hexflow("ask", "--workflow", "shop-questions", BERLIN).code == 2)
        asked = laptop.hexflow("ask", "--workflow", "shop-questions", BERLIN)
        assert "There is no workflow 'shop-questions'. There is: renamed." in asked.err


def test_an_engine_that_cannot_be_reached_is_named_and_may_still_come(tmp_path: Path) -> None:
    examples = copy_examples(tmp_path / "laptop")
    pools = examples / "pools.yaml"
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    pools.write_text(
        pools.read_text()
        .split("\n---\n")[0]
        .replace("\n  emulated: true", f"\n  endpoints: [{{url: {url}}}]")
    )
    with a_running_laptop(tmp_path, files=[examples]) as laptop:
        assert (
            f"no engine is ready yet: {url}: The engine could not be reached (connection refused)."
            in laptop.log.read_text()
        )
        done = laptop.hexflow("ask", BERLIN, "--deadline", "20")
        assert done.code == 4
        assert "Traceback" not in done.err
        assert len(done.err.splitlines()) <= 4


Spoil = Callable[[Path], object]


def _replace(name: str, old: str, new: str) -> Spoil:
    def spoil(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return spoil


BAD: list[tuple[str, Spoil, str]] = [
    ("wrong YAML", _replace("pools.yaml", "spec:", "spec: ["), "pools.yaml:"),
    ("unknown field", _replace("pools.yaml", "gpuType:", "gpuTyp:"), "gpuType"),
    ("two pools of one name", _replace("pools.yaml", "name: l40s", "name: a100"), "a100"),
    ("unknown policy", _replace("workflow.yaml", "policy: LeastHarm", "policy: HexFlow"), "HexGenFlow"),
    (
        "negative deadline",
        _replace("workflow.yaml", "deadlineSeconds: 60", "deadlineSeconds: -1"),
        "deadlineSeconds",
    ),
    (
        "unknown pool",
        _replace("workflow.yaml", "  databases:", "  pools: {names: [a100, h100]}\n  databases:"),
        "h100",
    ),
    ("missing secret", _replace("secret.yaml", "analytics:", "analytic:"), "analytics"),
    (
        "a stage that comes after a later one",
        _replace(
            "workflow.yaml",
            "  scheduling:",
            "  stages:\n    - {name: a, kind: CandidateGeneration, after: [b]}\n    - {name: b, kind: Evaluation}\n  scheduling:",
        ),
        "after",
    ),
    ("unknown GPU", _replace("pools.yaml", "gpuType: L40S", "gpuType: Abacus"), "Abacus"),
    ("invalid UTF-8", lambda folder: (folder / "pools.yaml").write_bytes(b"\xff\xfe\xfd"), "pools.yaml"),
    ("no such folder", shutil.rmtree, "laptop"),
]


@pytest.mark.parametrize(("spoil", "words"), [item[1:] for item in BAD], ids=[item[0] for item in BAD])
def test_wrong_resources_are_told_by_validate_and_by_up_with_their_place(
    tmp_path: Path, spoil: Spoil, words: str
) -> None:
    examples = copy_examples(tmp_path / "laptop")
    spoil(examples)
    for command in ("validate", "up"):
        done = hexflow(command, "-f", str(examples), state_dir=tmp_path / "state")
        assert (done.code, done.out) == (3, ""), done.err
        assert words in done.err
        assert "Traceback" not in done.err
        assert len(done.err.splitlines()) <= 4  # a line each, so that `file:line:` can be searched for
    (told,) = {
        json.dumps(hexflow("validate", "--json", "-f", str(examples), state_dir=tmp_path).json()["valid"])
    }
    assert told == "false"


@pytest.mark.parametrize(
    ("dsn", "words"), [("nowhere.sqlite", "no file"), ("text.sqlite", "not a SQLite database")]
)
def test_a_database_that_is_missing_or_none_is_told_before_anything_starts(
    tmp_path: Path, dsn: str, words: str
) -> None:
    examples = copy_examples(tmp_path / "laptop")
    (examples / "text.sqlite").write_text(
        "this is a text, and a long enough one to be no database at all" * 20
    )
    _replace("secret.yaml", "shop.sqlite", dsn)(examples)
    done = hexflow("up", "-f", str(examples), state_dir=tmp_path / "state")
    assert (done.code, done.out) == (3, "")
    assert words in done.err
    assert dsn in done.err


def test_a_sample_shop_that_cannot_be_built_is_one_sentence(tmp_path: Path) -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("needs a folder in which nobody, root included, can make a file")
    examples = copy_examples(tmp_path / "laptop")
    _replace("secret.yaml", "sqlite:///shop.sqlite", "sqlite:////proc/shop.sqlite")(examples)
    done = hexflow("up", "-f", str(examples), state_dir=tmp_path / "state")
    assert (done.code, done.out) == (5, "")
    assert "The sample shop cannot be built as /proc/shop.sqlite" in done.err
    assert len(done.err.splitlines()) == 1


def test_validate_names_what_it_found_and_what_a_laptop_leaves_out(tmp_path: Path) -> None:
    examples = copy_examples(tmp_path / "laptop")
    _replace("pools.yaml", "  emulated: true", "  emulated: true\n  sharedMemory: 8Gi")(examples)
    done = hexflow("validate", "-f", str(examples), state_dir=tmp_path)
    assert done.code == 0
    assert "GPUPool/l40s" in done.out
    assert "TextToSQLWorkflow/shop-questions" in done.out
    assert "sharedMemory" in done.err
    found = hexflow("validate", "--json", "-f", str(examples), state_dir=tmp_path).json()
    assert found["valid"] is True
    assert len(found["objects"]) == 4
    assert len(found["warnings"]) == 1


def test_validate_reads_stdin_beside_files(tmp_path: Path) -> None:
    examples = copy_examples(tmp_path / "laptop")
    pools = (examples / "pools.yaml").read_bytes()
    (examples / "pools.yaml").unlink()
    done = hexflow("validate", "-f", "-", "-f", str(examples), state_dir=tmp_path, stdin=pools)
    assert done.code == 0, done.err
    assert "GPUPool/l40s" in done.out
    wrong = pools.replace(b"gpuType: L40S", b"gpuTyp: L40S")
    done = hexflow("validate", "-f", "-", "-f", str(examples), state_dir=tmp_path, stdin=wrong)
    assert (done.code, done.out) == (3, "")
    assert (
        "<stdin>:23: GPUPool l40s: spec.gpuTyp: there is no such field; did you mean 'gpuType'?" in done.err
    )


def test_secrets_may_be_in_the_cluster_alone(tmp_path: Path) -> None:
    """And what is meant for a cluster is not measured by what a laptop can do."""
    examples = copy_examples(tmp_path / "laptop")
    (examples / "secret.yaml").unlink()
    _replace("pools.yaml", "  emulated: true", "  sharedMemory: 8Gi")(examples)
    done = hexflow("validate", "-f", str(examples), state_dir=tmp_path)
    assert done.code == 3
    assert "there is no Secret 'shop' here" in done.err
    done = hexflow("validate", "--secrets-elsewhere", "-f", str(examples), state_dir=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "TextToSQLWorkflow/shop-questions" in done.out


def test_a_missing_option_is_a_usage_error(tmp_path: Path) -> None:
    done = hexflow("validate", state_dir=tmp_path)
    assert done.code == 2
    assert "--file" in done.err


def _until(condition: Callable[[], bool]) -> None:
    from support.waiting import until

    until(condition, seconds=30)


def _until_instances(instances: Callable[[], list[dict[str, str]]], count: int) -> None:
    _until(lambda: len(instances()) == count)


def _post(url: str, body: bytes) -> dict[str, object]:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    try:
        with urlopen(Request(url + "/v1/chat/completions", body, headers)) as response:
            return dict(json.load(response))
    except HTTPError as error:
        return dict(json.load(error))
