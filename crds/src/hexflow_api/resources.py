"""A set of resources that belong together, and the questions that are asked of it."""

from dataclasses import dataclass
from pathlib import Path

from hexflow_api.gpupool import GPUPool
from hexflow_api.manifest import ConfigMap, Secret
from hexflow_api.meta import ConfigMapKeyRef
from hexflow_api.problem import Problem, ResourceError
from hexflow_api.workflow import Stage, TextToSQLWorkflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Hold pools and workflows, and what they name.

    Look-ups take the namespace ``default`` unless told otherwise.
    """

    pools: tuple[GPUPool, ...] = ()
    workflows: tuple[TextToSQLWorkflow, ...] = ()
    secrets: tuple[Secret, ...] = ()
    config_maps: tuple[ConfigMap, ...] = ()
    sources: tuple[Path, ...] = ()
    """Files that they came from."""
    notes: tuple[str, ...] = ()
    """What was passed over, for a person to read."""
    unknown_fields: tuple[str, ...] = ()
    """Fields that a newer version has written, passed over by a lenient reader; for a person to read."""

    def pool(self, name: str, *, namespace: str = "default") -> GPUPool | None:
        """Return the pool of that name, if there is one."""
        return next((pool for pool in self.pools if _is(pool, name, namespace)), None)

    def workflow(self, name: str, *, namespace: str = "default") -> TextToSQLWorkflow | None:
        """Return the workflow of that name, if there is one."""
        return next((workflow for workflow in self.workflows if _is(workflow, name, namespace)), None)

    def secret(self, name: str, *, namespace: str = "default") -> Secret | None:
        """Return the Secret of that name, if it came with the resources."""
        found = (s for s in self.secrets if (s.name, s.namespace) == (name, namespace))
        return next(found, None)

    def config_value(self, ref: ConfigMapKeyRef, *, namespace: str = "default") -> str | None:
        """Return the value of a ConfigMap's key, if it came with the resources."""
        found = (c for c in self.config_maps if (c.name, c.namespace) == (ref.name, namespace))
        config_map = next(found, None)
        return config_map.data.get(ref.key) if config_map else None

    @property
    def namespace(self) -> str:
        """The one namespace of all pools and workflows; a router or a laptop serves one. Raises ResourceError."""
        pools = {pool.metadata.namespace for pool in self.pools}
        names = sorted(pools | {workflow.metadata.namespace for workflow in self.workflows}) or ["default"]
        if len(names) > 1:
            raise ResourceError(
                [
                    Problem(
                        message=f"the resources are in the namespaces {', '.join(names)}, and one router serves one"
                        " namespace; load those of one namespace at a time"
                    )
                ]
            )
        return names[0]

    def pools_of(self, workflow: TextToSQLWorkflow, stage: Stage | None = None) -> tuple[GPUPool, ...]:
        """Return the pools that may serve ``workflow``, or one stage of it."""
        selection = workflow.spec.pools
        pools = [pool for pool in self.pools if pool.metadata.namespace == workflow.metadata.namespace]
        if selection and selection.names is not None:
            pools = [pool for pool in pools if pool.name in selection.names]
        if selection and selection.selector is not None:
            pools = [pool for pool in pools if selection.selector.matches(pool.metadata.labels)]
        if stage and stage.pools is not None:
            pools = [pool for pool in pools if pool.name in stage.pools]
        if stage and stage.model is not None:
            pools = [pool for pool in pools if pool.spec.model.name == stage.model]
        return tuple(pools)

    def model_of(self, workflow: TextToSQLWorkflow, stage: Stage) -> str:
        """Return the model that serves ``stage``. Raises ResourceError where that is not one model."""
        pools = self.pools_of(workflow, stage)
        models = sorted({pool.spec.model.name for pool in pools})
        if len(models) == 1:
            return models[0]
        if models:
            message = f"stage {stage.name} may run on several models: {', '.join(models)}; say which with model, or fewer with pools"
        elif stage.model is not None:
            message = f"no pool of this workflow serves the model {stage.model} of stage {stage.name}"
            offered = sorted({pool.spec.model.name for pool in self.pools_of(workflow)})
            message += f"; its pools serve {', '.join(offered)}" if offered else ""
        else:
            message = f"stage {stage.name} has no pool that may serve it"
        raise ResourceError(
            [Problem(object=f"TextToSQLWorkflow {workflow.name}", path="spec.stages", message=message)]
        )


def _is(resource: GPUPool | TextToSQLWorkflow, name: str, namespace: str) -> bool:
    return (resource.metadata.name, resource.metadata.namespace) == (name, namespace)
