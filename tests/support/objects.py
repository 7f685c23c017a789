"""The objects of one namespace as a test looks at them: resources, and all that was made for them."""

from collections.abc import Iterable
from typing import Any

import pytest

from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import ROUTER_NAME, Key, Observed, key_of_child
from hexflow_operator.plan import CHILD_KINDS, plan
from support.apiserver import ApiServer
from support.definitions import served_at
from support.kubernetes import Api, Object

CHILDREN = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}


class Objects:
    """The objects of one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.namespace = api, namespace

    def apply(self, resource: Object) -> Object:
        """Apply a resource as a person does."""
        path = f"{served_at(resource['kind'], namespace=self.namespace)}/{resource['metadata']['name']}"
        return self.api.patch(path, resource, kind="apply", fieldManager="tests", force="true")

    def delete(self, kind: str, name: str) -> None:
        """Delete a resource or a child."""
        self.api.delete(f"{self._path(kind)}/{name}")

    def get(self, kind: str, name: str) -> Object:
        """Read a resource or a child."""
        return self.api.get(f"{self._path(kind)}/{name}")

    def there(self, kind: str, name: str) -> bool:
        """Tell whether there is such an object."""
        return self.api.exists(f"{self._path(kind)}/{name}")

    def patch(self, kind: str, name: str, change: Object, *, way: str = "merge") -> Object:
        """Change an object by hand."""
        return self.api.patch(f"{self._path(kind)}/{name}", change, kind=way)

    def children(self) -> dict[str, Object]:
        """Return all that the operator has made, as kind/name -> object."""
        return {
            f"{kind}/{each['metadata']['name']}": each
            for kind, path in CHILDREN.items()
            for each in self.api.items(path.format(self.namespace), labelSelector="hexflow.dev/part")
        }

    def condition(self, kind: str, name: str, type_: str = "Ready") -> tuple[str, str, str]:
        """Return status, reason and message of a condition; empty words while there is none."""
        conditions = self.get(kind, name).get("status", {}).get("conditions", [])
        found: Object = next((each for each in conditions if each["type"] == type_), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def left_to_do(self) -> list[str]:
        """Return what a plan that is made from the API server's own answers would still do; of statuses nothing."""
        pools, workflows = (
            tuple(self.api.items(served_at(kind, namespace=self.namespace)))
            for kind in ("GPUPool", "TextToSQLWorkflow")
        )
        pools, workflows = _said(pools, "GPUPool"), _said(workflows, "TextToSQLWorkflow")
        children = [each for path in CHILDREN for each in self._children(path)]
        keys = [Key(each["kind"], self.namespace, each["metadata"]["name"]) for each in (*pools, *workflows)]
        found = []
        for key in (*keys, Key("Router", self.namespace, ROUTER_NAME)):
            primary = next(
                (
                    each
                    for each in (*pools, *workflows)
                    if (each["kind"], each["metadata"]["name"]) == (key.kind, key.name)
                ),
                None,
            )
            observed = Observed(
                primary=primary,
                pools=pools,
                workflows=workflows,
                children=tuple(each for each in children if key_of_child(each) == key),
            )
            answer = plan(key, observed, Defaults(), 0.0)
            found += [f"apply {each['kind']}/{each['metadata']['name']}" for each in answer.apply]
            found += [f"delete {each.kind}/{each.name}" for each in answer.delete]
        return found

    def _children(self, kind: str) -> tuple[Object, ...]:
        path = CHILDREN[kind].format(self.namespace)
        return _said(self.api.items(path, labelSelector="hexflow.dev/part"), kind)

    def _path(self, kind: str) -> str:
        return (
            CHILDREN[kind].format(self.namespace)
            if kind in CHILDREN
            else served_at(kind, namespace=self.namespace)
        )


def _said(items: Iterable[Object], kind: str) -> tuple[Object, ...]:
    """Return the items of a list with what they are, which they do not say."""
    versions: dict[str, Any] = {kind: version for version, kind in CHILD_KINDS}
    version = versions.get(kind, "hexflow.dev/v1alpha1")
    return tuple({**each, "apiVersion": version, "kind": kind} for each in items)


@pytest.fixture
def objects(api_server: ApiServer, namespace: str) -> Objects:
    """Look at the objects of the test's namespace."""
    return Objects(api_server.api, namespace)
