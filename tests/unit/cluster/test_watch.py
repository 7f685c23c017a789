import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hexflow_cluster import ClusterError, Forbidden, Listing, Unavailable, WatchEvent
from hexflow_cluster.watch import follow
from support.virtual_time import run


def an_object(name: str, version: int, uid: str | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
        },
        "data": {"version": str(version)},
    }


class FakeServer:
    """Lists and streams as they are scripted; each stream plays its events and then ends, breaks or stays silent."""

    def __init__(self, lists: list[list[dict[str, Any]] | ClusterError], streams: list[list[Any]]) -> None:
        self.lists, self.streams = lists, streams
        self.asked: list[str] = []

    async def list_objects(self) -> Listing:
        answer = self.lists.pop(0)
        if isinstance(answer, ClusterError):
            raise answer
        self.asked.append("list")
        return Listing(items=tuple(answer), resource_version=f"list-{len(self.asked)}")

    @asynccontextmanager
    async def stream(self, version: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        self.asked.append(version)
        yield self._events(self.streams.pop(0) if self.streams else [None])

    async def _events(self, script: list[Any]) -> AsyncIterator[dict[str, Any]]:
        for step in script:
            if isinstance(step, ClusterError):
                raise step
            if isinstance(step, int):
                await asyncio.sleep(step)
            elif step is None:
                await asyncio.sleep(1_000_000)
            else:
                yield step


def told(server: FakeServer, count: int, *, relist_seconds: float = 1_000.0) -> list[tuple[str, str]]:
    """Return type and name of the first ``count`` events."""

    async def work() -> list[WatchEvent]:
        events = []
        async for event in follow(
            list_objects=server.list_objects, stream=server.stream, relist_seconds=relist_seconds
        ):
            events.append(event)
            if len(events) == count:
                break
        return events

    return [(event.type, event.object.get("metadata", {}).get("name", "")) for event in run(work())]


def changed(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": item}


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}


def test_all_there_is_comes_first_and_then_every_change() -> None:
    server = FakeServer(
        [[an_object("a", 1)]],
        [
            [
                changed("ADDED", an_object("b", 2)),
                changed("MODIFIED", an_object("a", 3)),
                changed("DELETED", an_object("b", 4)),
                None,
            ]
        ],
    )
    assert told(server, 5) == [
        ("Added", "a"),
        ("Synced", ""),
        ("Added", "b"),
        ("Modified", "a"),
        ("Deleted", "b"),
    ]


def test_a_stream_that_ends_is_taken_up_where_it_was() -> None:
    server = FakeServer(
        [[]],
        [
            [
                changed("ADDED", an_object("a", 7)),
                changed("BOOKMARK", {"metadata": {"resourceVersion": "9"}}),
            ],
            [changed("ADDED", an_object("b", 10)), None],
        ],
    )
    assert told(server, 3) == [("Synced", ""), ("Added", "a"), ("Added", "b")]
    assert server.asked == ["list", "list-1", "9"]


def test_what_was_deleted_while_the_watch_was_down_is_told_after_410() -> None:
    server = FakeServer(
        [[an_object("a", 1), an_object("b", 1)], [an_object("b", 1), an_object("c", 5)]], [[GONE]]
    )
    assert told(server, 6) == [
        ("Added", "a"),
        ("Added", "b"),
        ("Synced", ""),
        ("Deleted", "a"),
        ("Added", "c"),
        ("Synced", ""),
    ]


def test_an_object_that_came_back_under_its_old_name_is_deleted_and_added() -> None:
    server = FakeServer([[an_object("a", 1)], [an_object("a", 5, uid="another")]], [[GONE]])
    assert told(server, 4)[2:] == [("Deleted", "a"), ("Added", "a")]


def test_a_broken_stream_goes_on_after_a_pause_without_a_new_list() -> None:
    server = FakeServer(
        [[]],
        [
            [changed("ADDED", an_object("a", 3)), Unavailable("cut")],
            [changed("ADDED", an_object("b", 4)), None],
        ],
    )
    assert told(server, 3) == [("Synced", ""), ("Added", "a"), ("Added", "b")]
    assert server.asked == ["list", "list-1", "3"]


def test_a_list_that_fails_later_is_tried_until_it_comes() -> None:
    failures: list[Any] = [Unavailable("down"), Forbidden("rights are being changed")]
    server = FakeServer([[an_object("a", 1)], *failures, [an_object("a", 2)]], [[GONE]])
    assert told(server, 4) == [("Added", "a"), ("Synced", ""), ("Modified", "a"), ("Synced", "")]


def test_a_first_list_that_fails_is_the_callers_to_know() -> None:
    with pytest.raises(Forbidden):
        told(FakeServer([Forbidden("no right to list")], []), 1)


def test_everything_is_listed_anew_now_and_then_whatever_the_stream_says() -> None:
    bookmark = changed("BOOKMARK", {"metadata": {"resourceVersion": "2"}})
    server = FakeServer([[an_object("a", 1)], []], [[60, bookmark, 60, bookmark, None]])
    assert told(server, 4, relist_seconds=100.0) == [
        ("Added", "a"),
        ("Synced", ""),
        ("Deleted", "a"),
        ("Synced", ""),
    ]


def test_a_change_that_the_list_told_already_is_not_told_again() -> None:
    server = FakeServer(
        [[an_object("a", 3)]],
        [[changed("ADDED", an_object("a", 3)), changed("MODIFIED", an_object("a", 4)), None]],
    )
    assert told(server, 3) == [("Added", "a"), ("Synced", ""), ("Modified", "a")]
