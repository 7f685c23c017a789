"""The router and its engines as processes: killed, stopped, restarted."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.router import (
    QUESTION,
    WORKFLOW,
    Laptop,
    Process,
    a_laptop,
    a_process,
    a_router_process,
    an_emulator_process,
    secret_data,
    write_yaml,
)
from support.waiting import until

PATH = f"/v1/workflows/{WORKFLOW}/queries"
ASYNC = {"prefer": "respond-async"}


@contextmanager
def engines(laptop: Laptop, *pools: str, time_scale: float = 20) -> Iterator[dict[str, tuple[Process, str]]]:
    """Run an emulator process for each pool and list them."""
    with ExitStack() as stack:
        started = {
            pool: stack.enter_context(an_emulator_process(laptop, time_scale=time_scale)) for pool in pools
        }
        laptop.list_instances({f"{pool}-0": (pool, url) for pool, (_, url) in started.items()})
        yield started


def until_ready(url: str) -> None:
    until(lambda: httpx.get(f"{url}/readyz").status_code == 200)


def ask_aside(url: str, **fields: Any) -> tuple[threading.Thread, list[httpx.Response]]:
    """Ask in a thread; the response is added to the list."""
    responses: list[httpx.Response] = []
    thread = threading.Thread(
        target=lambda: responses.append(
            httpx.post(url + PATH, json={"question": QUESTION, **fields}, timeout=60)
        )
    )
    thread.start()
    return thread, responses


def busy_instances(admin: str) -> list[str]:
    state = httpx.get(f"{admin}/debug/scheduler").json()
    return [shown["instance"] for shown in state["instances"] if shown["running"]]


def test_a_question_is_answered_though_its_engine_is_killed(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    with engines(laptop, "a100", "l40s") as fleet, a_router_process(laptop, time_scale=20) as (_, url, admin):
        until_ready(url)
        for _, engine in fleet.values():
            # So slow that its first call still runs when it is killed, however busy this machine is.
            httpx.post(f"{engine}/emulator/faults", json={"faults": ["slow:100"]})
        thread, responses = ask_aside(url, deadlineSeconds=600)
        until(lambda: bool(busy_instances(admin)))
        (victim,) = {name.partition("-")[0] for name in busy_instances(admin)}
        fleet.pop(victim)[0].signal(signal.SIGKILL)
        (survivor,) = fleet
        httpx.post(f"{fleet[survivor][1]}/emulator/faults", json={"faults": ["slow:1"]})
        thread.join(30)
    answer = responses[0].json()
    assert (answer["status"], answer["rows"]) == ("Succeeded", [[3]])
    calls = [call for stage in answer["stages"] for call in stage["calls"]]
    assert {call["instance"] for call in calls} == {f"{survivor}-0"}
    assert calls[0]["attempts"] == 2


def test_a_question_ends_with_a_reason_though_all_engines_are_killed(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    with engines(laptop, "a100", "l40s") as fleet, a_router_process(laptop, time_scale=20) as (_, url, admin):
        until_ready(url)
        for _, engine in fleet.values():
            httpx.post(f"{engine}/emulator/faults", json={"faults": ["slow:100"]})
        thread, responses = ask_aside(url, deadlineSeconds=60)
        until(lambda: bool(busy_instances(admin)))
        for process, _ in fleet.values():
            process.signal(signal.SIGKILL)
        thread.join(30)
    answer = responses[0].json()
    assert responses[0].status_code in {502, 503}
    assert answer["status"] == "Failed"
    assert answer["reason"] in {"ConnectFailed", "BrokenAnswer", "NoInstance", "NoInstanceInTime"}
    assert answer["error"]["message"]


def test_sigterm_lets_running_questions_finish(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    with engines(laptop, "a100") as fleet, a_router_process(laptop, time_scale=20) as (process, url, admin):
        until_ready(url)
        httpx.post(f"{fleet['a100'][1]}/emulator/faults", json={"faults": ["slow:10"]})
        thread, responses = ask_aside(url, deadlineSeconds=600)
        until(lambda: bool(busy_instances(admin)))
        process.signal(signal.SIGTERM)
        process.wait_for(r"(Stopping)")
        assert httpx.get(f"{url}/readyz").json()["reason"] == "Stopping"
        refused = httpx.post(url + PATH, json={"question": QUESTION})
        httpx.post(f"{fleet['a100'][1]}/emulator/faults", json={"faults": ["slow:1"]})
        thread.join(30)
        assert process.wait() == 0
    assert refused.status_code == 503
    assert responses[0].json()["rows"] == [[3]]


def test_a_second_signal_ends_the_router_at_once(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    with a_router_process(laptop) as (process, url, _):
        assert httpx.post(url + PATH, json={"question": QUESTION}, headers=ASYNC).status_code == 202
        process.signal(signal.SIGTERM)
        process.wait_for(r"(Stopping)")
        process.signal(signal.SIGTERM)
        assert process.wait(seconds=5) == -signal.SIGTERM


def test_the_grace_period_bounds_the_drain(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    journal = tmp_path / "journal.sqlite"
    arguments = ("--journal", str(journal), "--grace-seconds", "0.5")
    with a_router_process(laptop, *arguments) as (process, url, _):
        address = httpx.post(url + PATH, json={"question": QUESTION}, headers=ASYNC).headers["location"]
        process.signal(signal.SIGTERM)
        began = time.monotonic()
        assert process.wait(seconds=10) == 0
        assert time.monotonic() - began < 8
    with a_router_process(laptop, *arguments) as (_, url, _):
        answer = httpx.get(url + address).json()
    assert (answer["status"], answer["reason"]) == ("Cancelled", "Stopping")


def test_finished_async_questions_survive_a_restart_and_unfinished_ones_say_so(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    arguments = ("--journal", str(tmp_path / "journal.sqlite"))
    with engines(laptop, "a100") as fleet:
        with a_router_process(laptop, *arguments, time_scale=20) as (process, url, _):
            until_ready(url)
            done = httpx.post(url + PATH, json={"question": QUESTION}, headers=ASYNC).headers["location"]
            until(lambda: httpx.get(url + done).json()["status"] == "Succeeded")
            first = httpx.get(url + done).json()
            httpx.post(f"{fleet['a100'][1]}/emulator/faults", json={"faults": ["freeze:100000"]})
            left = httpx.post(url + PATH, json={"question": QUESTION}, headers=ASYNC).headers["location"]
            process.signal(signal.SIGKILL)
            process.wait()
        with a_router_process(laptop, *arguments) as (process, url, _):
            assert "1 async queries of an earlier process" in process.output
            again = httpx.get(url + done).json()
            interrupted = httpx.get(url + left).json()
            events = httpx.get(f"{url}{done}/events").text
            deleted = httpx.delete(url + left).json()
    assert again == first
    assert again["rows"] == [[3]]
    assert (interrupted["status"], interrupted["reason"]) == ("Failed", "Interrupted")
    assert "ask again" in interrupted["error"]["message"]
    assert events.startswith("id: 1\nevent: query.finished\ndata: {")
    assert deleted == interrupted


@pytest.mark.parametrize("flag", ["--port", "--admin-port"])
def test_a_port_in_use_is_told_in_one_sentence(tmp_path: Path, flag: str) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = {"--port": "0", "--admin-port": "0", flag: str(taken.getsockname()[1])}
        arguments = [part for pair in ports.items() for part in pair]
        with a_process("-m", "hexflow_router", "--config", str(laptop.resources), *arguments) as process:
            assert process.wait() == 2
    assert process.output.count("\n") == 1
    assert "in use" in process.output
    assert flag in process.output


def test_wrong_resources_keep_the_router_from_starting_and_are_named(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    (laptop.resources / "workflow.yaml").write_text("kind: [\n", encoding="utf-8")
    with a_process(
        "-m", "hexflow_router", "--config", str(laptop.resources), "--port", "0", "--admin-port", "0"
    ) as process:
        assert process.wait() == 2
    assert "cannot start" in process.output
    assert "workflow.yaml" in process.output
    assert "Traceback" not in process.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--config", "/nowhere/at/all"), "/nowhere/at/all"),
        (("--time-scale", "fast"), "--time-scale 'fast'"),
        (("--prot", "1"), "--prot"),
    ],
)
def test_wrong_arguments_keep_the_router_from_starting(arguments: tuple[str, ...], says: str) -> None:
    with a_process("-m", "hexflow_router", *arguments, "--port", "0", "--admin-port", "0") as process:
        assert process.wait() == 2
    assert says in process.output
    assert "Traceback" not in process.output


def test_a_journal_that_is_none_keeps_the_router_from_starting(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    journal = tmp_path / "journal.sqlite"
    journal.write_bytes(b"no journal, though long enough to be one " * 50)
    with a_process(
        "-m", "hexflow_router", "--config", str(laptop.resources), "--journal", str(journal),
        "--port", "0", "--admin-port", "0",
    ) as process:  # fmt: skip
        assert process.wait() == 2
    assert "name another file" in process.output


def test_no_key_and_no_question_is_in_the_log(tmp_path: Path) -> None:
    key = {"name": "keys", "key": "analytics"}
    laptop = a_laptop(tmp_path / "laptop", tenants=[{"name": "analytics", "apiKeySecretRef": key}])
    write_yaml(laptop.resources / "keys.yaml", secret_data("keys", analytics="key-of-gold"))
    log = tmp_path / "events.jsonl"
    with (
        engines(laptop, "a100"),
        a_router_process(laptop, "--log-level", "debug", "--event-log", str(log), time_scale=20) as (
            process,
            url,
            _,
        ),
    ):
        until_ready(url)
        for word in ("key-of-gold", "key-of-lead"):
            headers = {"authorization": f"Bearer {word}"}
            httpx.post(url + PATH, json={"question": QUESTION}, headers=headers, timeout=60)
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    written = log.read_text(encoding="utf-8")
    assert '"input":"finished"' in written
    for text in (process.output, written):
        assert "key-of" not in text
        assert QUESTION not in text
        assert "SELECT" not in text
