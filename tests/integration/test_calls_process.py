"""The router as a process, seen by OpenAI clients: stopping, and calls beside questions."""

import json
import signal
import threading
from pathlib import Path

import httpx

from support.resources import MODEL
from support.router import QUESTION, a_laptop, a_router_process, an_emulator_process
from support.waiting import until

CALL = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
CHAT = "/v1/chat/completions"


def test_a_stream_that_outlasts_the_grace_period_is_told_that_the_router_stops(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    with an_emulator_process(laptop, "--fault", "stall:1:tokens=1") as (_, engine):
        laptop.list_instances({"a100-0": ("a100", engine)})
        with a_router_process(laptop, "--grace-seconds", "0.5") as (process, url, _):
            until(lambda: httpx.get(url + "/readyz").status_code == 200)
            received: list[str] = []

            def read() -> None:
                with httpx.stream("POST", url + CHAT, json=CALL, timeout=30) as reply:
                    for line in reply.iter_lines():
                        received.append(line)

            reader = threading.Thread(target=read)
            reader.start()
            until(lambda: bool(received))
            process.signal(signal.SIGTERM)
            reader.join(20)
            assert process.wait(seconds=15) == 0
            assert "Traceback" not in process.output
    events = [line.removeprefix("data: ") for line in received if line]
    assert json.loads(events[-1])["error"]["reason"] == "Stopping"
    assert "[DONE]" not in events


def test_an_engine_that_cannot_be_reached_makes_calls_wait_and_the_admin_port_say_why(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path / "laptop")
    laptop.list_instances({"a100-0": ("a100", "http://127.0.0.1:9")})
    with a_router_process(laptop) as (_, url, admin):
        until(lambda: "ConnectFailed" in httpx.get(admin + "/debug/scheduler").text)
        assert httpx.get(url + "/readyz").status_code == 503
        reply = httpx.post(
            url + CHAT, json={**CALL, "stream": False}, headers={"x-hexflow-deadline-ms": "500"}
        )
        assert reply.status_code == 503
        assert reply.json()["error"]["reason"] == "NoInstanceInTime"
        page = httpx.get(admin + "/metrics").text
        assert 'hexflow_instance_ready{instance="a100-0",pool="a100"} 0.0' in page
