"""Whatever a resource says: once its plan is carried out, nothing is left to do, whoever else has been there."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hexflow_operator.defaults import Defaults
from hexflow_operator.observed import ROUTER_NAME, Key, Observed
from hexflow_operator.plan import Plan, plan
from support.observations import NOW, Object, a_pool, a_workflow

QUANTITIES = st.sampled_from(["500m", "1000m", "2", "0.5", "1024Mi", "1.5Gi", "1e3", "3k"])
NAMES = st.sampled_from(["a", "b", "HOME", "HF_TOKEN", "VLLM_LOGGING_LEVEL"])
REQUESTS = st.fixed_dictionaries(
    {}, optional={"requests": st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES)}
)
ENGINES = st.fixed_dictionaries(
    {},
    optional={
        "args": st.lists(st.sampled_from(["--x", "--enforce-eager", "1"]), max_size=3),
        "env": st.lists(st.fixed_dictionaries({"name": NAMES, "value": st.text(max_size=3)}), max_size=4),
        "port": st.integers(1, 65_535),
    },
)
PATCHES = st.fixed_dictionaries(
    {},
    optional={
        "hostIPC": st.booleans(),
        "tolerations": st.lists(st.fixed_dictionaries({"operator": st.just("Exists")}), max_size=2),
        "containers": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(["engine", "more"]), "image": st.just("i")}),
            max_size=2,
            unique_by=lambda each: each["name"],
        ),
        "securityContext": st.fixed_dictionaries({"runAsUser": st.sampled_from([None, 7])}),
    },
)
POOLS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 4),
        "suspend": st.booleans(),
        "tensorParallelSize": st.sampled_from([1, 2]),
        "maxNumSeqs": st.integers(1, 99),
        "prefixCaching": st.booleans(),
        "priorityScheduling": st.booleans(),
        "emulated": st.booleans(),
        "engine": ENGINES,
        "resources": REQUESTS,
        "cache": st.sampled_from([{"emptyDir": {}}, {"emptyDir": {"sizeLimit": "1024Mi"}}, {"pvc": {"claimName": "c"}}]),
        "sharedMemory": QUANTITIES.filter(lambda text: "e" not in text),
        "podTemplate": st.fixed_dictionaries({"spec": PATCHES}),
    },
)  # fmt: skip
WORKFLOWS = st.fixed_dictionaries(
    {},
    optional={
        "tuning": st.fixed_dictionaries({"mode": st.sampled_from(["Off", "Recommend", "Auto"])}),
        "router": st.fixed_dictionaries(
            {}, optional={"resources": REQUESTS, "serviceMonitor": st.booleans()}
        ),
    },
)


def stored(value: Any, *, field: str = "") -> Any:
    """Return what an API server and its neighbours make of an object: filled in, canonical, added to."""
    if isinstance(value, Mapping):
        kept = {key: stored(item, field=key) for key, item in value.items()}
        added = {} if field in ("limits", "requests", "data", "matchLabels", "selector") else {"filledIn": 1}
        return {key: item for key, item in kept.items() if item not in ("", [], None)} | added
    if isinstance(value, list):
        items = [stored(item) for item in value]
        if field in ("containers", "volumes", "env", "ownerReferences"):
            items.append({"name": f"injected-{field}", "uid": "injected"})
        return items
    canonical = {"1000m": "1", "1024Mi": "1Gi", "0.5": "500m", "1e3": "1k", "1.5Gi": "1536Mi"}
    return canonical.get(value, value) if isinstance(value, str) and field != "value" else value


def carried_out(key: Key, observed: Observed) -> tuple[Plan, Plan]:
    """Return the plan, and the next one once its children are there and its status is written."""
    first = plan(key, observed, Defaults(), NOW)
    primary = observed.primary and {**observed.primary, "status": first.status}
    there = Observed(
        primary=primary,
        pools=observed.pools,
        workflows=observed.workflows,
        children=tuple(stored(child) for child in first.apply),
    )
    second = plan(key, there, Defaults(), NOW + 10)
    return first, second


@settings(deadline=None)
@given(POOLS)
def test_a_pool_that_is_as_it_should_be_is_left_alone(spec: Object) -> None:
    pool = a_pool(**spec)
    first, second = carried_out(Key("GPUPool", "team", "a100"), Observed(primary=pool, pools=(pool,)))
    assert len(first.apply) == 3
    assert (second.apply, second.delete) == ((), ())


@settings(deadline=None)
@given(POOLS, WORKFLOWS)
def test_a_workflow_and_a_router_that_are_as_they_should_be_are_left_alone(
    pool_spec: Object, spec: Object
) -> None:
    pool, workflow = a_pool(**pool_spec), a_workflow(**spec)
    observed = Observed(pools=(pool,), workflows=(workflow,))
    _, second = carried_out(Key("Router", "team", ROUTER_NAME), observed)
    assert second == Plan()
    key = Key("TextToSQLWorkflow", "team", "shop")
    _, second = carried_out(key, Observed(primary=workflow, pools=(pool,), workflows=(workflow,)))
    assert second == Plan()


@settings(deadline=None)
@given(POOLS, POOLS)
def test_a_change_of_a_pool_is_carried_out_once(before: Object, after: Object) -> None:
    key = Key("GPUPool", "team", "a100")
    old, new = a_pool(**before), a_pool(**after)
    made = plan(key, Observed(primary=old, pools=(old,)), Defaults(), NOW).apply
    change = plan(key, Observed(primary=new, pools=(new,), children=made), Defaults(), NOW)
    names = {each["kind"]: each for each in made} | {each["kind"]: each for each in change.apply}
    again = plan(key, Observed(primary=new, pools=(new,), children=tuple(names.values())), Defaults(), NOW)
    assert (again.apply, again.delete) == ((), ())
