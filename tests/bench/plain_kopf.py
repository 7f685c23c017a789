"""The same plan behind kopf's ordinary handlers, to compare with: not shipped, not an operator to run.

As kopf's documentation shows it: create, update and resume handlers and a timer for the status, each reading what it
needs from the API server and applying what the plan says. kopf adds what it adds to the users' objects.
"""

import asyncio
import sys
import time
from typing import Any

import kopf

from hexflow_cluster import Access, Cluster, Connection, Kind, NotFound, TokenBucket, connect
from hexflow_operator.cache import stripped
from hexflow_operator.decision import Plan
from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import PART_LABEL, ROUTER_NAME, Key, Observed, key_of_child
from hexflow_operator.observer import KINDS, POD
from hexflow_operator.plan import CHILD_KINDS, plan
from hexflow_operator.settings import Settings


class Plain:
    """Bring one resource, and its namespace's router, to where the plan says."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.cluster = Cluster(
            connection, field_manager="hexflow-operator", writes=TokenBucket(rate=100, burst=200)
        )

    async def converge(self, key: Key, patch: kopf.Patch | None) -> None:
        """Read, plan and apply."""
        answer = await self._plan(key)
        for manifest in answer.apply:
            await self.cluster.apply(manifest)
        if patch is not None and answer.status is not None:
            patch.status.update(answer.status)

    async def _plan(self, key: Key) -> Plan:
        async def listed(kind: Kind, labels: str | None = None) -> list[dict[str, Any]]:
            listing = await self.cluster.list(kind, namespace=key.namespace, labels=labels)
            return [stripped(each) for each in listing.items]  # type: ignore[misc]

        pools, workflows = [await listed(kind) for kind in KINDS.values()]
        labels = f"hexflow.dev/{'pool' if key.kind == 'GPUPool' else 'workflow'}={key.name}"
        labels = f"{PART_LABEL}=router" if key.kind == "Router" else labels
        children = [each for kind in CHILD_KINDS for each in await listed(Kind(*kind), labels)]
        primary = None
        if key.kind != "Router":
            primary = await self.cluster.find(KINDS[key.kind], key.name, namespace=key.namespace)
        router = await self.cluster.find(Kind("apps/v1", "Deployment"), ROUTER_NAME, namespace=key.namespace)
        observed = Observed(
            primary=primary,
            pools=tuple(pools),
            workflows=tuple(workflows),
            children=tuple(each for each in children if key_of_child(each) == key),
            pods=tuple(await listed(POD, labels)),
            router=router,
            router_pods=tuple(await listed(POD, f"{PART_LABEL}=router")),
        )
        return plan(key, observed, Defaults(), time.time())


def handlers(plain: Plain) -> kopf.OperatorRegistry:
    """Return kopf's registry with the handlers of both kinds."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: Any) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=plain.connection.server, aiohttp_session=plain.connection.session())

    for kind in KINDS:

        async def made(namespace: Any, name: str, patch: kopf.Patch, kind: Any = kind, **_: Any) -> None:
            try:
                await plain.converge(Key(kind, namespace, name), patch)
                await plain.converge(Key("Router", namespace, ROUTER_NAME), None)
            except NotFound as error:
                raise kopf.TemporaryError(str(error), delay=5) from error

        which: Any = {"group": "hexflow.dev", "version": "v1alpha1", "kind": kind, "registry": registry}
        kopf.on.resume(**which, id="made")(made)
        kopf.on.create(**which, id="made")(made)
        kopf.on.update(**which, id="made")(made)
        kopf.timer(**which, id="again", interval=60.0)(made)
    return registry


async def main() -> None:
    """Run it until it is ended."""
    settings = Settings.from_arguments(sys.argv[1:])
    connection = await connect(Access(kubeconfig=settings.kubeconfig))
    await kopf.operator(registry=handlers(Plain(connection)), standalone=True, clusterwide=True)


if __name__ == "__main__":
    asyncio.run(main())
