"""The CronJob of a workflow's tuner.

It reads the namespace's resources from the ConfigMap `hexflow-router` and the event log from the router's admin port,
and writes the ConfigMap `<workflow>-policy`, which the operator never makes. Without data it exits 0: a failed Job
turns an application red in a GitOps tool.
"""

from typing import Any, Final

from hexflow_api import TextToSQLWorkflow
from hexflow_operator.children.metadata import child_of, labels, tuner_name
from hexflow_operator.children.network import ROUTER_PORTS
from hexflow_operator.children.pod import container_security, placed, pod_security, variables
from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import ROUTER_NAME, Manifest

DEFAULT_SCHEDULE: Final = "*/5 * * * *"
LATE_SECONDS: Final = 120
"""A run that could not begin in this time is left out; the next one sees all that it would have seen."""
RUN_SECONDS: Final = 1800
RESOURCES: Final = {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}


def tuner_cron_job(workflow: TextToSQLWorkflow, resource: Manifest, *, defaults: Defaults) -> dict[str, Any]:
    """Return the CronJob that tunes one workflow."""
    tuning = workflow.spec.tuning
    pod_labels = labels("tuner", workflow.name)
    pod = {
        "serviceAccountName": tuner_name(workflow.name),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "securityContext": pod_security(),
        "containers": [_container(workflow, defaults)],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        **placed(None, defaults),
    }
    spec = {
        "schedule": (tuning.schedule if tuning else None) or DEFAULT_SCHEDULE,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": LATE_SECONDS,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {
            "metadata": {"labels": pod_labels},
            "spec": {
                "backoffLimit": 1,
                "activeDeadlineSeconds": RUN_SECONDS,
                "ttlSecondsAfterFinished": 3600,
                "template": {"metadata": {"labels": pod_labels}, "spec": pod},
            },
        },
    }
    metadata = child_of(resource, part="tuner", name=tuner_name(workflow.name))
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def _container(workflow: TextToSQLWorkflow, defaults: Defaults) -> dict[str, Any]:
    admin = f"http://{ROUTER_NAME}.{workflow.metadata.namespace}.svc:{ROUTER_PORTS['admin'][0]}"
    namespace = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "name": "tuner",
        "image": defaults.emulator_image,
        "imagePullPolicy": defaults.image_pull_policy,
        "command": ["python", "-m", "hexflow_simulator.tuner"],
        "args": ["--workflow", workflow.name, "--config-map", ROUTER_NAME, "--router", admin],
        "env": [*variables({"HOME": "/tmp"}), {"name": "HEXFLOW_NAMESPACE", "valueFrom": namespace}],  # noqa: S108
        "resources": RESOURCES,
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }
