"""A coordination Lease: who leads, since when, and until when the others wait.

Only the record and its reading and writing; who takes it when is the caller's (the operator's `leader.py`).
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from hexflow_cluster.cluster import Cluster
from hexflow_cluster.kind import Kind, Manifest

LEASE: Final = Kind("coordination.k8s.io/v1", "Lease")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """Hold what a Lease says."""

    holder: str
    """Identity of who leads; empty: nobody."""
    duration_seconds: int
    """For how long after its last change the others wait."""
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    version: str = ""
    """The resourceVersion: it changes with every renewal, so nobody needs to compare clocks."""

    def held_by(self, holder: str, *, at: float, duration_seconds: int) -> "LeaseRecord":
        """Return the record as ``holder`` writes it at ``at`` (seconds since the epoch)."""
        now = micro_time(at)
        same = self.holder == holder
        return replace(
            self,
            holder=holder,
            duration_seconds=duration_seconds,
            acquired=self.acquired if same and self.acquired else now,
            renewed=now,
            transitions=self.transitions + (0 if same or not self.version else 1),
        )


class Leases:
    """Read and write one Lease."""

    def __init__(self, cluster: Cluster, *, namespace: str, name: str) -> None:
        self._cluster, self._namespace, self._name = cluster, namespace, name

    async def read(self) -> LeaseRecord | None:
        """Return what the Lease says, or None where there is none."""
        found = await self._cluster.find(LEASE, self._name, namespace=self._namespace)
        return _record(found) if found else None

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        """Write a record over the version that it was made from and return what is there now.

        Raises Conflict where somebody else was faster.
        """
        metadata: dict[str, Any] = {"name": self._name, "namespace": self._namespace}
        if record.version:
            metadata["resourceVersion"] = record.version
        manifest: Manifest = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": metadata,
            "spec": {
                "holderIdentity": record.holder,
                "leaseDurationSeconds": record.duration_seconds,
                "leaseTransitions": record.transitions,
                **({"acquireTime": record.acquired} if record.acquired else {}),
                **({"renewTime": record.renewed} if record.renewed else {}),
            },
        }
        write = self._cluster.replace if record.version else self._cluster.create
        return _record(await write(manifest))


def _record(manifest: Manifest) -> LeaseRecord:
    spec = manifest.get("spec") or {}
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        duration_seconds=spec.get("leaseDurationSeconds") or 1,
        acquired=spec.get("acquireTime") or "",
        renewed=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
        version=manifest["metadata"]["resourceVersion"],
    )


def micro_time(at: float) -> str:
    """Return seconds since the epoch as Kubernetes writes points in time that have microseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
