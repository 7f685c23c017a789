"""One step towards what is asked for: observe, plan, and do what the plan says. Level-triggered.

The plan is made from the cache first; where it is empty, which is the rule, nothing is asked of the API server. Where
it is not, the resource is read live and the plan made anew, so that nothing is made for what is gone already.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hexflow_api.condition import Reason
from hexflow_cluster import (
    Cluster,
    ClusterError,
    Conflict,
    Forbidden,
    Invalid,
    Kind,
    KindUnknown,
    Manifest,
    NotFound,
    Terminating,
    Told,
    event_about,
)
from hexflow_operator.cache import Cache
from hexflow_operator.decision import Event, Plan, Reference
from hexflow_operator.defaults import Defaults
from hexflow_operator.feed import Feed
from hexflow_operator.observed import ROUTER_NAME, Key, Observed, Refusal
from hexflow_operator.observer import KINDS, Observer

_log = logging.getLogger("hexflow.operator.reconcile")

CONTROLLER: Final = "hexflow.dev/hexflow-operator"
"""Who says so, in events."""


Planner = Callable[[Key, Observed, Defaults, float], Plan]
"""What decides: `plan.plan`; the number is seconds since the epoch."""


class Incomplete(Exception):
    """The API server refused a part of a plan, which is tried again later; the text has its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Say when to look again."""

    again_after: float | None = None
    gone: bool = False
    """The resource is not there any more, and nothing is left to do."""


class Reconciler:
    """Bring the cluster nearer to what one key asks for."""

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        feed: Feed,
        observer: Observer,
        *,
        plan: Planner,
        defaults: Defaults,
        wake: Callable[[Key], None],
        now: Callable[[], float],
        instance: str,
        wrote: Callable[[str, str], None],
    ) -> None:
        """``instance`` names this process in events; ``wrote`` is told the verb and kind of every write."""
        self._cluster, self._cache, self._feed, self._observer = cluster, cache, feed, observer
        self._decide, self._defaults, self._wake, self._now = plan, defaults, wake, now
        self._instance, self._wrote = instance, wrote
        self._refused: dict[Key, dict[tuple[str, str], Refusal]] = {}

    async def reconcile(self, key: Key) -> Result:
        """Do what has to be done for a key. Raises ClusterError, Incomplete."""
        plan = await self._plan(key)
        if not (plan.apply or plan.delete) and self._refused.get(key):  # what was refused is no longer wanted
            self._note(key, {})
            plan = await self._plan(key)
        if _is_empty(plan):
            return self._result(key, plan)
        if not await self._observer.confirm(key):
            plan = await self._plan(key)
        try:
            return await self._act(key, plan)
        except Terminating:
            _log.info("%s %s/%s: its namespace is being deleted", *key)
            return Result(gone=True)

    async def _act(self, key: Key, plan: Plan) -> Result:
        found = [await self._delete(reference) for reference in plan.delete]
        found += [await self._apply(key, manifest) for manifest in plan.apply]
        refused = {(each.kind, each.name): each for each in found if each is not None}
        self._note(key, refused)
        if plan.apply or plan.delete:
            plan = await self._plan(key)  # the status speaks of what is there now
        if plan.status is not None and await self._write_status(key, plan.status):
            for event in plan.events:
                await self._tell(event)
        if refused:
            raise Incomplete("; ".join(each.message for each in refused.values()))
        return self._result(key, plan)

    async def _plan(self, key: Key) -> Plan:
        refused = [self._refused.get(key, {})]
        if key.kind != "Router":
            refused.append(self._refused.get(Key("Router", key.namespace, ROUTER_NAME), {}))
        known = tuple(refusal for each in refused for refusal in each.values())
        return self._decide(key, await self._observer.observe(key, known), self._defaults, self._now())

    async def _apply(self, key: Key, manifest: Manifest) -> Refusal | None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if not self._cache.find(kind, key.namespace, name) and await self._observer.is_taken(key, manifest):
            taken = Reason.NAME_TAKEN
            return Refusal(kind=kind, name=name, reason=taken.value, message=taken.sentence)
        try:
            made = await self._cluster.apply(manifest)
        except Terminating:
            raise
        except (Forbidden, Invalid, Conflict, KindUnknown) as error:
            return _refusal(kind, name, error)
        except NotFound as error:  # the namespace itself
            raise Terminating(str(error), status=error.status) from error
        _log.info("applied %s %s/%s", kind, key.namespace, name)
        self._wrote("apply", kind)
        self._feed.wrote(made, by=key)
        return None

    async def _delete(self, reference: Reference) -> Refusal | None:
        kind = Kind(reference.api_version, reference.kind)
        try:
            await self._cluster.delete(kind, reference.name, namespace=reference.namespace, uid=reference.uid)
        except (Conflict, KindUnknown) as error:  # it is another object by now, or none can be there
            _log.info("not deleted: %s", error)
            return None
        except (Forbidden, Invalid) as error:
            return _refusal(reference.kind, reference.name, error)
        _log.info("deleted %s %s/%s", reference.kind, reference.namespace, reference.name)
        self._wrote("delete", reference.kind)
        return None

    async def _write_status(self, key: Key, status: Mapping[str, Any]) -> bool:
        """Write the status; tell whether there was still an object to write it to."""
        primary = self._cache.find(*key)
        if primary is None:
            return False
        kind = KINDS[key.kind]
        names = {"name": key.name, "namespace": key.namespace, "uid": primary["metadata"]["uid"]}
        manifest = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": names,
            "status": dict(status),
        }
        try:
            written = await self._cluster.apply_status(manifest)
        except (NotFound, Conflict) as error:  # gone, or another of its name
            _log.info("no status was written: %s", error)
            return False
        self._wrote("status", key.kind)
        self._feed.wrote(written, by=key)
        return True

    async def _tell(self, event: Event) -> None:
        """Emit an event; one that cannot be is no reason to stop."""
        told = Told(type=event.type, reason=event.reason, action=event.action, note=event.note)
        about = event.regarding
        reference = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
        }
        if about.uid:
            reference["uid"] = about.uid
        manifest = event_about(
            reference, told, at=self._now(), controller=CONTROLLER, instance=self._instance
        )
        try:
            await self._cluster.create(manifest)
            self._wrote("create", "Event")
        except ClusterError as error:
            _log.warning("an event was not written: %s", error)

    def _note(self, key: Key, refused: dict[tuple[str, str], Refusal]) -> None:
        """Remember what was refused, for the statuses; a router's concern every resource of its namespace."""
        if refused == self._refused.get(key, {}):
            return
        self._refused.pop(key, None)
        if refused:
            self._refused[key] = refused
        if key.kind == "Router":
            for each in (*self._cache.pools(key.namespace), *self._cache.workflows(key.namespace)):
                self._wake(Key(each["kind"], key.namespace, each["metadata"]["name"]))

    def _result(self, key: Key, plan: Plan) -> Result:
        if key.kind == "Router":
            gone = not self._cache.pools(key.namespace) and not self._cache.workflows(key.namespace)
        else:
            gone = self._cache.find(*key) is None
        if gone:
            self._refused.pop(key, None)
        return Result(again_after=plan.requeue_after, gone=gone)


def _refusal(kind: str, name: str, error: ClusterError) -> Refusal:
    reason = error.reason or type(error).__name__
    return Refusal(kind=kind, name=name, reason=reason, message=str(error))


def _is_empty(plan: Plan) -> bool:
    return not plan.delete and not plan.apply and plan.status is None and not plan.events
