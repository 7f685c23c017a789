"""The Kubernetes API as HexFlow uses it: read, watch, apply, delete, lease.

The operator, the router in a cluster and the tuner go through it; no other package imports a Kubernetes
client. It knows no resource of ours in particular.
"""
