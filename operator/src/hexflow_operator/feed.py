"""What the watches tell, turned into keys to reconcile.

First everything that there is comes in (`seen`), of all kinds, and only then is the first key added (`told`): a plan
that is made from half of the objects would undo the other half. Knows no kopf.
"""

from collections.abc import Callable
from typing import Any

from hexflow_operator.cache import Cache, Change
from hexflow_operator.observed import Key, Manifest
from hexflow_operator.wake import affected, asked_anew


class Feed:
    """Keep the cache and wake what has to be looked at."""

    def __init__(
        self,
        cache: Cache,
        *,
        wake: Callable[[Key], None],
        edited: Callable[[Key], None],
        relisted: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        """``edited`` is called before the ``wake`` of a key of which something else is asked now; ``relisted``
        is called when a watch had to begin anew: what was deleted meanwhile is told by nobody.
        """
        self._cache, self._wake, self._edited = cache, wake, edited
        self._relisted, self._clock = relisted, clock
        self._waiting: set[Key] = set()
        self._known: set[str] = set()
        """Uids of which a watch has told."""
        self.told_at = clock()
        """When a watch last told something, by ``clock``."""

    def seen(self, manifest: Manifest) -> None:
        """Note an object; its keys are woken by the next `told`."""
        self._collect(self._cache.put(manifest))

    def told(self, type_: str | None, manifest: Manifest) -> None:
        """Note an event (its type None: of a list), and wake all that has been waiting."""
        self.told_at = self._clock()
        uid = manifest["metadata"]["uid"]
        if type_ == "DELETED":
            self._known.discard(uid)
            self._collect(self._cache.drop(manifest))
        elif type_ is None and uid in self._known:
            self._relisted()
        else:
            self._known.add(uid)
        self.flush()

    def flush(self) -> None:
        """Wake all that has been waiting."""
        for key in sorted(self._waiting, key=_pools_first):
            self._wake(key)
        self._waiting.clear()

    def gone(self, manifest: Manifest) -> None:
        """Note that an object turned out not to be there any more."""
        self._known.discard(manifest["metadata"]["uid"])
        self._collect(self._cache.drop(manifest))

    def wrote(self, manifest: Manifest, *, by: Key) -> None:
        """Note what a write of ours has made of an object; its own key knows, others are woken."""
        change = self._cache.put(manifest)
        if change is not None:
            for key in self._affected(change) - {by}:
                self._wake(key)

    def _collect(self, change: Change | None) -> None:
        if change is not None:
            self._waiting |= self._affected(change)
            for key in asked_anew(change):
                self._edited(key)

    def _affected(self, change: Change) -> set[Key]:
        namespace = change.object["metadata"].get("namespace", "")
        return affected(change, self._cache.workflows(namespace))


def _pools_first(key: Key) -> Any:
    """Sort so that what others read the status of comes before them."""
    return ("GPUPool", "Router", "TextToSQLWorkflow").index(key.kind), key.namespace, key.name
