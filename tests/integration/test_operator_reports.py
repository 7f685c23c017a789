"""What the routers say of themselves reaches the statuses, when it changes and not before."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from support.auditlog import AuditLog
from support.objects import Objects
from support.operators import Operators
from support.resources import pool_data, workflow_data
from support.waiting import until


class Router:
    """A router's admin port that says what it is told to."""

    def __init__(self) -> None:
        self.report: dict[str, Any] | None = None
        self.asked: list[str] = []
        router = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                router.asked.append(self.path)
                body = json.dumps(router.report or {}).encode()
                self.send_response(200 if router.report is not None else 503)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server.server_port}/{{namespace}}"
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def router() -> Iterator[Router]:
    running = Router()
    yield running
    running.close()


def test_what_a_router_measures_is_copied_to_the_status_once_for_each_change(
    operators: Operators, objects: Objects, router: Router, audit_log: AuditLog
) -> None:
    operator = operators.start(f"--router-url={router.url}", "--report-seconds=1")
    operator.until_leading()
    objects.apply(pool_data("a100", emulated=True, replicas=1))
    objects.apply(workflow_data("shop"))
    until(lambda: len(router.asked) >= 2, seconds=60)
    assert set(router.asked) == {f"/{objects.namespace}/v1/report"}
    operator.until_quiet()
    router.report = {
        "problems": [],
        "pools": {},
        "workflows": {"shop": {"p95Seconds": 12.3, "attainment": 0.97}},
    }

    def status() -> dict[str, Any]:
        found: dict[str, Any] = objects.get("TextToSQLWorkflow", "shop").get("status", {})
        return found

    until(lambda: status().get("p95Seconds") == 12.3, seconds=60)
    assert status()["attainment"] == 0.97
    operator.until_quiet()
    since, asked = audit_log.from_now_on(), len(router.asked)
    until(lambda: len(router.asked) >= asked + 4, seconds=60)
    assert [each for each in since.writes(user=operators.user) if each.resource != "leases"] == []
    router.report = None  # silent: the last figures stay
    asked = len(router.asked)
    until(lambda: len(router.asked) >= asked + 5, seconds=60)
    operator.until_quiet()
    assert status()["p95Seconds"] == 12.3
