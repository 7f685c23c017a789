"""ServiceAccounts and RoleBindings of router and tuner.

The API server lets nobody hand out rights that they lack, so the ClusterRoles are not made here: the operator may
`bind` two by name and needs none of the rights in them.
"""

from typing import Any


def service_account(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a ServiceAccount; its token is mounted only where a pod asks for it."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": False,
    }


def role_binding(metadata: dict[str, Any], *, cluster_role: str) -> dict[str, Any]:
    """Return the binding, in its namespace alone, of a ClusterRole to the ServiceAccount of the same name."""
    subject = {"kind": "ServiceAccount", "name": metadata["name"], "namespace": metadata["namespace"]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role},
        "subjects": [subject],
    }
