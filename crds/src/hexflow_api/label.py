"""Labels by which what belongs together is found: set by the operator and the tuner, read by operator and router."""

from typing import Final

PART: Final = "hexflow.dev/part"
"""On everything that is made for a resource: engine, router, tuner or policy."""
POOL: Final = "hexflow.dev/pool"
"""On the children of a pool and their pods: the pool's name."""
WORKFLOW: Final = "hexflow.dev/workflow"
"""On the children of a workflow, and on the tuner's ConfigMap: the workflow's name."""
GPU_TYPE: Final = "hexflow.dev/gpu-type"
"""On the pods of a pool: the key of the speed profile."""
POLICY_PART: Final = "policy"
"""The part that a tuner's ConfigMap is."""
