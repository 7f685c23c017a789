import asyncio
from collections.abc import Mapping
from typing import Any

from hexflow_operator.reports import Reports
from support.virtual_time import now, run


class Routers:
    """Routers that answer as they are told, and who hears of changes."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.changed: list[str] = []
        self.namespaces = {"team"}
        self.reports = Reports(
            self._fetch,
            namespaces=lambda: self.namespaces,
            changed=self.changed.append,
            now=now,
            every_seconds=60.0,
        )

    async def _fetch(self, namespace: str) -> Mapping[str, Any]:
        self.asked.append(namespace)
        answer = self.answers.get(namespace, OSError("nobody listens"))
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


def test_a_router_is_asked_once_a_minute_and_only_news_is_passed_on() -> None:
    async def work() -> None:
        routers = Routers()
        routers.answers["team"] = {"workflows": {"shop": {"p95Seconds": 12.0}}}
        asking = asyncio.create_task(routers.reports.run())
        await asyncio.sleep(290)
        assert 4 <= len(routers.asked) <= 5
        assert routers.changed == ["team"]
        routers.answers["team"] = {"workflows": {"shop": {"p95Seconds": 13.0}}}
        await asyncio.sleep(70)
        assert routers.changed == ["team", "team"]
        assert routers.reports.said["team"].content["workflows"]["shop"]["p95Seconds"] == 13.0
        asking.cancel()

    run(work())


def test_a_router_that_is_silent_once_still_counts_and_one_that_stays_silent_does_not() -> None:
    async def work() -> None:
        routers = Routers()
        routers.answers["team"] = {"workflows": {}}
        await routers.reports.ask_all()
        routers.answers["team"] = ValueError("not JSON")
        await routers.reports.ask_all()
        await routers.reports.ask_all()
        assert "team" in routers.reports.said
        await routers.reports.ask_all()
        assert "team" not in routers.reports.said
        assert routers.changed == ["team", "team"]
        await routers.reports.ask_all()
        assert routers.changed == ["team", "team"], "it has said so already"

    run(work())


def test_the_report_of_a_namespace_that_is_empty_now_is_dropped() -> None:
    async def work() -> None:
        routers = Routers()
        routers.answers["team"] = {}
        await routers.reports.ask_all()
        routers.namespaces = set()
        await routers.reports.ask_all()
        assert (len(routers.reports.said), routers.asked) == (0, ["team"])

    run(work())


def test_a_router_that_never_answered_is_forgotten_with_its_namespace() -> None:
    async def work() -> None:
        routers = Routers()
        await routers.reports.ask_all()
        routers.namespaces = set()
        await routers.reports.ask_all()
        assert "team" not in routers.reports._misses

    run(work())
