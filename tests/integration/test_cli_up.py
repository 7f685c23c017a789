"""`hexflow up` in one shell; `hexflow ask`, curl and the `openai` client in another (A2). Real processes throughout."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import openai
import psutil
import pytest

from support.laptop import RunningLaptop, a_running_laptop, assert_nothing_is_left, environment, hexflow
from support.waiting import until

BERLIN = "How many customers live in Berlin?"
MODEL = "Qwen/Qwen2.5-Coder-32B-Instruct"
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": BERLIN}]}
KEY = "hexflow-support-demo"


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLaptop]:
    with a_running_laptop(tmp_path_factory.mktemp("up")) as running:
        yield running


@pytest.fixture
def client(laptop: RunningLaptop) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=laptop.url + "/v1", api_key=KEY, max_retries=0, timeout=30) as client:
        yield client


def test_a_question_becomes_rows_on_stdout_and_a_verdict_on_stderr(laptop: RunningLaptop) -> None:
    done = laptop.hexflow("ask", BERLIN)
    assert done.code == 0, done.err
    assert [line.strip() for line in done.out.split("\n") if line.strip()] == ["customers", "─" * 9, "98"]
    assert "1 row · " in done.err
    assert " calls on " in done.err


def test_sql_and_explanation_are_shown_when_asked_for(laptop: RunningLaptop) -> None:
    done = laptop.hexflow("ask", BERLIN, "--show-sql", "--explain", "--tenant", "support", "-d", "shop")
    assert done.code == 0, done.err
    for words in ("SELECT COUNT(*) AS customers", "candidate-generation", "candidate 4", "Urgency", "Votes"):
        assert words in done.err


def test_json_has_the_whole_answer_and_nothing_else(laptop: RunningLaptop) -> None:
    done = laptop.hexflow("ask", "--json", BERLIN, "--deadline", "45.5")
    answer = done.json()
    assert (answer["status"], answer["rows"], answer["deadlineSeconds"]) == ("Succeeded", [[98]], 45.5)
    assert done.err == ""
    calls = [call for stage in answer["stages"] for call in stage["calls"]]
    for call in calls:
        assert call["instance"] in {"a100-0", "l40s-0", "a6000-0"}
        assert call["promptTokens"] > 0
        assert call["outputTokens"] > 0
        assert call["seconds"] > 0
        assert call["budgetSeconds"] > 0
        assert call["urgency"] is not None


def test_a_question_may_come_from_stdin(laptop: RunningLaptop) -> None:
    assert laptop.hexflow("ask", "--json", "-", stdin=BERLIN.encode()).json()["rows"] == [[98]]


def test_a_question_outside_the_book_gets_the_honest_sentence(laptop: RunningLaptop) -> None:
    done = laptop.hexflow("ask", "What is the meaning of life?")
    assert (done.code, done.out) == (1, "")
    assert "knows only the questions of its answer book" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("ask", BERLIN, "-w", "nothing"), "nothing", 2),
        (("ask", BERLIN, "-d", "nothing"), "nothing", 2),
        (("ask", BERLIN, "--tenant", "nobody"), "There are: analytics, support.", 2),
        (("ask", BERLIN, "--api-key", "wrong"), "--api-key", 2),
        (("ask", BERLIN, "--deadline", "-1"), "--deadline -1 cannot be met", 2),
        (("ask", BERLIN, "--deadline", "nan"), "--deadline nan cannot be met", 2),
        (("ask", BERLIN, "--deadline", "1e9"), "deadlineSeconds", 2),
        (("ask", "  "), "The question is empty", 2),
        (("ask", "x" * 100_000), "question", 2),
        (("ask", BERLIN, "--url", "http://127.0.0.1:1"), "`hexflow up`", 4),
        (("ask", BERLIN, "--url", "nonsense://x"), "no URL of a router", 2),
        (("ask", BERLIN, "--surprise"), "No such option", 2),
    ],
)
def test_bad_input_is_one_readable_paragraph(
    laptop: RunningLaptop, arguments: tuple[str, ...], words: str, code: int
) -> None:
    done = laptop.hexflow(*arguments)
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) <= 12


@pytest.mark.parametrize(
    ("stdin", "reason"), [(b"\xff\xfe", "InvalidUtf8"), (b"x" * 5_000_000, "QuestionTooLong")]
)
def test_bad_bytes_on_stdin_are_refused_as_json_where_json_is_asked_for(
    laptop: RunningLaptop, stdin: bytes, reason: str
) -> None:
    done = laptop.hexflow("ask", "--json", "-", stdin=stdin)
    assert done.code == 2
    assert (done.json()["error"]["reason"], done.json()["error"]["exitCode"]) == (reason, 2)


def test_a_port_in_use_is_one_sentence(laptop: RunningLaptop, tmp_path: Path) -> None:
    port = laptop.url.rsplit(":", 1)[1]
    done = hexflow("up", "--port", port, state_dir=tmp_path)
    assert done.code == 5
    assert f"Port {port} of 127.0.0.1 is in use" in done.err
    assert list(tmp_path.iterdir()) == []


def test_curl_asks_a_question_and_makes_a_call(laptop: RunningLaptop) -> None:
    assert _post(laptop, "/v1/workflows/shop-questions/queries", {"question": BERLIN})["rows"] == [[98]]
    chat = _post(laptop, "/v1/chat/completions", CHAT)
    assert chat["object"] == "chat.completion"
    assert chat["usage"]["completion_tokens"] > 0


def test_the_openai_client_works(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    chat = client.chat.completions.create(**CHAT)  # type: ignore[call-overload]
    assert chat.choices[0].finish_reason == "stop"
    assert "Berlin" in chat.choices[0].message.content


def test_the_openai_client_streams(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**CHAT, seed=1)  # type: ignore[call-overload]
    stream = client.chat.completions.create(  # type: ignore[call-overload]
        **CHAT, seed=1, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert len(chunks) > 2
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_the_openai_client_reads_our_errors(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        client.chat.completions.create(model="no-such-model", messages=[{"role": "user", "content": "?"}])


@pytest.fixture(scope="module")
def slow_laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLaptop]:
    with a_running_laptop(tmp_path_factory.mktemp("slow"), time_scale=5) as running:
        yield running


@contextmanager
def asking(laptop: RunningLaptop) -> Iterator[subprocess.Popen[str]]:
    """Ask in a process of its own and return when one of its calls runs on an instance."""
    command = [sys.executable, "-m", "hexflow_cli", "ask", "--json", BERLIN]
    with subprocess.Popen(
        command, env=environment(laptop.state_dir), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: running_calls(laptop) > 0, seconds=30)
        yield process
        process.kill()


def scheduler(laptop: RunningLaptop) -> list[dict[str, Any]]:
    with urlopen(laptop.state["adminUrl"] + "/debug/scheduler") as response:
        return list(json.load(response)["instances"])


def running_calls(laptop: RunningLaptop) -> int:
    return sum(len(item["running"]) for item in scheduler(laptop))


def test_a_query_survives_the_death_of_an_instance_which_comes_back_under_another_id(
    slow_laptop: RunningLaptop,
) -> None:
    with asking(slow_laptop) as process:
        gpu = next(item["gpuType"] for item in scheduler(slow_laptop) if item["running"])
        next(item for item in slow_laptop.family() if gpu in _command(item)).send_signal(signal.SIGKILL)
        out, _ = process.communicate(timeout=60)
    answer = json.loads(out)
    assert (answer["status"], answer["rows"]) == ("Succeeded", [[98]])
    until(lambda: any(item["id"].endswith("-0.1") for item in slow_laptop.instances()), seconds=20)


def test_a_question_that_is_interrupted_leaves_the_engines_at_once(slow_laptop: RunningLaptop) -> None:
    with asking(slow_laptop) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "Stopped.\n")
    until(lambda: running_calls(slow_laptop) == 0, seconds=5)


def test_a_router_that_dies_comes_back_on_the_same_port(slow_laptop: RunningLaptop) -> None:
    victim = next(item for item in slow_laptop.family() if "hexflow_router" in _command(item))
    victim.send_signal(signal.SIGKILL)
    until(lambda: slow_laptop.hexflow("ask", "--json", BERLIN).code == 0, seconds=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_behind_however_it_ends(tmp_path: Path, number: signal.Signals) -> None:
    with a_running_laptop(tmp_path) as laptop:
        family = laptop.family()
        assert len(family) == 6  # itself, the keeper, the router, three instances
        laptop.process.send_signal(number)
        code = laptop.process.wait(timeout=30)
        assert code == {signal.SIGINT: 130, signal.SIGKILL: -9}.get(number, 143)
        assert_nothing_is_left(family, laptop.state_dir)


def test_nothing_is_left_behind_when_the_terminal_interrupts_everybody_at_once(tmp_path: Path) -> None:
    with a_running_laptop(tmp_path) as laptop:
        family = laptop.family()
        for item in family:
            item.send_signal(signal.SIGINT)
        assert laptop.process.wait(timeout=30) == 130
        assert_nothing_is_left(family, laptop.state_dir)


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _post(laptop: RunningLaptop, path: str, body: object) -> dict[str, Any]:
    data = json.dumps(body)
    if curl := shutil.which("curl"):
        command = [curl, "-sS", "--fail-with-body", laptop.url + path, "-H", f"Authorization: Bearer {KEY}"]
        command += ["-H", "Content-Type: application/json", "-d", data]
        return dict(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    with urlopen(Request(laptop.url + path, data.encode(), headers)) as response:
        return dict(json.load(response))
