"""What laptop mode cannot honour of resources that were written for a cluster."""

from collections.abc import Iterator

from hexflow_api.gpupool import GPUPool
from hexflow_api.policy import PARAMETERS
from hexflow_api.resources import Resources
from hexflow_api.workflow import TextToSQLWorkflow

_POD_FIELDS = ("engine", "placement", "cache", "sharedMemory", "resources", "podTemplate")


def laptop_warnings(resources: Resources) -> list[str]:
    """Return a sentence for each thing in ``resources`` that has an effect in a cluster only."""
    found = [line for pool in resources.pools for line in _of_pool(pool)]
    return found + [line for workflow in resources.workflows for line in _of_workflow(workflow)]


def _of_pool(pool: GPUPool) -> Iterator[str]:
    spec, name = pool.spec, f"GPUPool {pool.name}"
    given = spec.model_dump(by_alias=True, exclude_unset=True)
    if spec.suspend:
        yield f"{name} is suspended and has no instance"
    elif spec.source in ("Pods", "Selector"):
        yield (
            f"{name} has pods in a cluster and no instance here; add `emulated: true`, or `endpoints:` with a"
            " server that runs"
        )
    if spec.endpoints is not None and spec.replicas is not None:
        yield f"{name}: replicas is ignored, for there are as many instances as endpoints"
    if ignored := [field for field in _POD_FIELDS if field in given]:
        yield f"{name}: {', '.join(ignored)} only matter to pods in a cluster"


def _of_workflow(workflow: TextToSQLWorkflow) -> Iterator[str]:
    spec, name = workflow.spec, f"TextToSQLWorkflow {workflow.name}"
    if spec.tuning is not None and spec.tuning.mode != "Off":
        yield f"{name}: tuning.mode {spec.tuning.mode} needs the cluster's tuner; parameters stay at value or seed"
    weighted = [tenant.name for tenant in spec.tenants if tenant.weight != 1]
    fair = spec.scheduling.initial_parameters.get("fairness", 0.0) > 0
    if weighted and not fair and spec.scheduling.rules[1] != "VTC":
        policy, (dispatch, _) = spec.scheduling.policy, spec.scheduling.rules
        remedy = "set scheduling.fairness, or " if "fairness" in PARAMETERS.get(dispatch, {}) else ""
        yield (
            f"{name}: the weight of {', '.join(weighted)} has no effect under {policy}; "
            f"{remedy}write {dispatch}+VTC"
        )
    if spec.router is not None:
        yield f"{name}: router only matters to the router's pods in a cluster"
