"""The Kubernetes API as HexFlow uses it: read, watch, apply, delete, lease.

The operator, the router in a cluster and the tuner go through it; no other package imports a Kubernetes
client. It knows no resource of ours in particular.
"""

from hexflow_cluster.bucket import TokenBucket
from hexflow_cluster.cluster import Cluster, Guard
from hexflow_cluster.connection import Access, Connection, connect
from hexflow_cluster.errors import (
    Busy,
    ClusterError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KindUnknown,
    NotFound,
    Terminating,
    Unauthorized,
    Unavailable,
)
from hexflow_cluster.event import Told, event_about
from hexflow_cluster.kind import Kind, Manifest, kind_of, selector_text
from hexflow_cluster.leader import Leadership, LeadershipLost, LeaseTimes
from hexflow_cluster.lease import LeaseRecord, Leases
from hexflow_cluster.retry import NO_RETRIES, Retries
from hexflow_cluster.watch import Listing, WatchEvent

__all__ = [
    "NO_RETRIES",
    "Access",
    "Busy",
    "Cluster",
    "ClusterError",
    "Conflict",
    "Connection",
    "Forbidden",
    "Gone",
    "Guard",
    "Invalid",
    "Kind",
    "KindUnknown",
    "Leadership",
    "LeadershipLost",
    "LeaseRecord",
    "LeaseTimes",
    "Leases",
    "Listing",
    "Manifest",
    "NotFound",
    "Retries",
    "Terminating",
    "TokenBucket",
    "Told",
    "Unauthorized",
    "Unavailable",
    "WatchEvent",
    "connect",
    "event_about",
    "kind_of",
    "selector_text",
]
