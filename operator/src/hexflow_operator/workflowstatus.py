"""The status of a TextToSQLWorkflow: whether questions are answered, by which rules, and how well."""

from collections.abc import Iterator

from hexflow_api import GPUPool, Resources, TextToSQLWorkflow
from hexflow_api.condition import Condition, ConditionType, Reason
from hexflow_api.reference import dangling
from hexflow_api.status import TextToSQLWorkflowStatus
from hexflow_api.tuned import Tuned
from hexflow_operator.conditions import (
    Finding,
    Obstacles,
    Truth,
    conditions,
    last_finding,
    reconciling,
    transitions,
)
from hexflow_operator.decision import Event
from hexflow_operator.observed import ROUTER_NAME, Manifest, Observed
from hexflow_operator.pods import PATIENT, troubles
from hexflow_operator.reading import alive, readable
from hexflow_operator.tuning import measured, parameters_in_force, recommended_parameters, tuning_finding


def workflow_status(
    workflow: TextToSQLWorkflow,
    resource: Manifest,
    observed: Observed,
    *,
    leading: TextToSQLWorkflow,
    settings: TextToSQLWorkflow | None,
    cron_job: Manifest | None,
    tuned: Tuned,
    obstacles: Obstacles,
    now: float,
) -> tuple[TextToSQLWorkflowStatus, tuple[Event, ...]]:
    """Return the status of a workflow and the events of its transitions.

    ``leading`` names the policy of the namespace, ``settings`` the settings of its router (None: nobody gives any).
    """
    pools, report = readable(alive(observed.pools), GPUPool), observed.said
    lacking = next(_lacking(workflow, pools), None)
    serving = Finding("True", Reason.SERVING, "questions are answered")
    ready = obstacles.ready(
        lacking
        or _reported(workflow, observed)
        or _router(observed)
        or _pools(workflow, pools, observed)
        or serving
    )
    stalled = obstacles.stalled(lacking or (ready if ready.reason is Reason.SECRET_NOT_FOUND else None))
    under_way = ready.status != "True" and stalled.status == "False"
    findings = {
        ConditionType.READY: ready,
        ConditionType.RECONCILING: reconciling(ready.message if under_way else None),
        ConditionType.STALLED: stalled,
        ConditionType.SETTINGS_IN_FORCE: _settings(workflow, leading, settings),
    }
    if tuning := tuning_finding(workflow, cron_job=cron_job, tuned=tuned):
        findings[ConditionType.TUNING_FRESH] = tuning
    status = TextToSQLWorkflowStatus.model_validate(
        {
            "observedGeneration": resource["metadata"].get("generation", 0),
            "conditions": tuple(map(Condition.model_validate, conditions(findings, resource, now=now))),
            "url": f"http://{ROUTER_NAME}.{workflow.metadata.namespace}.svc/v1/workflows/{workflow.name}/queries",
            "policy": leading.spec.scheduling.policy,
            "parameters": parameters_in_force(workflow, resource, report) or None,
            "recommended": recommended_parameters(tuned) or None,
            **measured(workflow, resource, report),
        }
    )
    return status, transitions(findings, resource)


def _lacking(workflow: TextToSQLWorkflow, pools: list[GPUPool]) -> Iterator[Finding]:
    """Yield what the workflow names and is not there, in the words of `hexflow validate`."""
    resources = Resources(pools=tuple(pools), workflows=(workflow,))
    for resource, path, message in dangling(resources, secrets_elsewhere=True):
        if resource is workflow:
            reason = _reason(workflow, resources, path)
            yield Finding("False", reason, f"{path}: {message}")


def _reason(workflow: TextToSQLWorkflow, resources: Resources, path: str) -> Reason:
    if path.endswith("]") and ("pools[" in path or "names[" in path):
        return Reason.POOL_NOT_FOUND
    if not resources.pools_of(workflow):
        return Reason.NO_POOL
    models = (
        {pool.spec.model.name for pool in resources.pools_of(workflow, stage)}
        for stage in workflow.spec.effective_stages()
    )
    return Reason.MODEL_AMBIGUOUS if any(len(each) > 1 for each in models) else Reason.MODEL_NOT_SERVED


def _reported(workflow: TextToSQLWorkflow, observed: Observed) -> Finding | None:
    """Return what the router complains about."""
    if (report := observed.said) is None:
        known = last_finding(observed.primary, ConditionType.READY) if observed.primary else None
        return known if known and known.reason is Reason.SECRET_NOT_FOUND else None
    for problem in report.problems:
        if (problem.kind, problem.name) == ("TextToSQLWorkflow", workflow.name):
            known_reasons = (each for each in Reason if each.value == problem.reason)
            reason = next(known_reasons, Reason.ROUTER_NOT_READY)
            return Finding("False", reason, problem.message)
    return None


def _router(observed: Observed) -> Finding | None:
    if observed.router is None:
        return Finding("Unknown", Reason.ROUTER_NOT_READY, "the router is being made")
    if (observed.router.get("status") or {}).get("readyReplicas"):
        return None
    found = troubles(observed.router_pods, observed.router)
    if not found:
        return Finding("Unknown", Reason.ROUTER_NOT_READY, "the router has no pod yet")
    waiting = found[0].reason in PATIENT
    return Finding(
        "Unknown" if waiting else "False",
        Reason.ROUTER_NOT_READY if waiting else found[0].reason,
        "the router is starting" if waiting else f"router: {found[0].message}",
    )


def _pools(workflow: TextToSQLWorkflow, pools: list[GPUPool], observed: Observed) -> Finding | None:
    mine = {pool.name for pool in Resources(pools=tuple(pools)).pools_of(workflow)}
    states = {
        each["metadata"]["name"]: condition
        for each in observed.pools
        if each["metadata"]["name"] in mine
        for condition in (each.get("status") or {}).get("conditions", ())
        if condition["type"] == ConditionType.READY.value
    }
    if any(state["status"] == "True" for state in states.values()):
        return None
    loading = not states or any(state["status"] == "Unknown" for state in states.values())
    status: Truth = "Unknown" if loading else "False"
    said = "; ".join(f"{name}: {state['reason']}" for name, state in sorted(states.items()))
    message = f"no pool is ready ({said})" if said else "nothing is known of the pools yet"
    return Finding(status, Reason.POOLS_NOT_READY, message)


def _settings(
    workflow: TextToSQLWorkflow, leading: TextToSQLWorkflow, settings: TextToSQLWorkflow | None
) -> Finding:
    policy = leading.spec.scheduling.policy
    disagreements = []
    if workflow.spec.scheduling.policy != policy:
        disagreements.append(f"the policy in force is {policy} of {leading.name}, the oldest workflow")
    if settings and workflow.spec.router is not None and workflow.spec.router != settings.spec.router:
        disagreements.append(
            f"the router is as {settings.name} says, the oldest workflow that says something of it"
        )
    if not disagreements:
        return Finding("True", Reason.SETTLED, f"the policy in force is {policy}")
    return Finding("False", Reason.OTHER_SETTINGS_IN_FORCE, "; ".join(disagreements))
