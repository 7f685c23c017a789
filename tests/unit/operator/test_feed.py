from typing import Any

from hexflow_operator.cache import Cache
from hexflow_operator.feed import Feed
from hexflow_operator.observed import ROUTER_NAME, Key


def a_pool(name: str, version: int, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "hexflow.dev/v1alpha1", "kind": "GPUPool", "metadata": metadata, **fields}


class Heard:
    """A feed and all that it has said."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.edited: list[str] = []
        self.relists = 0
        self.time = 0.0
        self.feed = Feed(
            Cache(),
            wake=self.keys.append,
            edited=lambda key: self.edited.append(key.name),
            relisted=self._relisted,
            clock=lambda: self.time,
        )

    def _relisted(self) -> None:
        self.relists += 1

    def event(self, type_: str | None, manifest: dict[str, Any]) -> list[str]:
        """Tell of an event as kopf does; return the names that were woken."""
        self.keys.clear()
        if type_ != "DELETED":
            self.feed.seen(manifest)
        self.feed.told(type_, manifest)
        return [key.name for key in self.keys]


def test_nothing_is_woken_before_everything_has_come_in() -> None:
    heard = Heard()
    for name in ("a", "b", "c"):
        heard.feed.seen(a_pool(name, 1))
    assert heard.keys == []
    heard.feed.told(None, a_pool("a", 1))
    assert [key.name for key in heard.keys] == ["a", "b", "c", ROUTER_NAME], "pools first, all at once"
    heard.keys.clear()
    heard.feed.told(None, a_pool("b", 1))
    assert heard.keys == []


def test_changes_and_ends_wake_what_they_concern() -> None:
    heard = Heard()
    heard.event(None, a_pool("a", 1))
    assert heard.event("MODIFIED", a_pool("a", 2, status={"readyReplicas": 1})) == ["a"]
    assert heard.event("DELETED", a_pool("a", 3)) == ["a", ROUTER_NAME]


def test_what_a_person_asks_anew_is_told_apart_from_how_things_are() -> None:
    heard = Heard()
    pool = a_pool("a", 1)
    pool["metadata"]["generation"] = 1
    heard.event(None, pool)
    assert sorted(heard.edited) == ["a", ROUTER_NAME]
    heard.edited.clear()
    same = a_pool("a", 2, status={"readyReplicas": 1})
    same["metadata"]["generation"] = 1
    heard.event("MODIFIED", same)
    assert heard.edited == []
    changed = a_pool("a", 3)
    changed["metadata"]["generation"] = 2
    heard.event("MODIFIED", changed)
    assert sorted(heard.edited) == ["a", ROUTER_NAME]


def test_a_watch_that_begins_anew_is_noticed_by_what_it_tells_again() -> None:
    heard = Heard()
    heard.event(None, a_pool("a", 1))
    heard.event("ADDED", a_pool("b", 2))
    assert heard.relists == 0
    heard.event(None, a_pool("b", 2))
    assert heard.relists == 1


def test_a_write_of_ours_wakes_others_and_its_echo_nobody() -> None:
    heard = Heard()
    heard.event(None, a_pool("a", 1))
    heard.keys.clear()
    shop = {**a_pool("shop", 5), "kind": "TextToSQLWorkflow"}
    heard.event(None, shop)
    heard.keys.clear()
    written = a_pool("a", 6, status={"readyReplicas": 1})
    heard.feed.wrote(written, by=Key("GPUPool", "team", "a"))
    assert [key.name for key in heard.keys] == ["shop"]
    assert heard.event("MODIFIED", written) == []


def test_the_time_of_the_last_event_is_kept() -> None:
    heard = Heard()
    heard.time = 7.0
    heard.event(None, a_pool("a", 1))
    heard.time = 9.0
    assert heard.feed.told_at == 7.0
