"""Whatever a file holds, the loader answers with resources or with readable problems, and with nothing else."""

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hexflow_api import ResourceError, load_text, parse_resource
from support.resources import pool_data, workflow_data

POOL = pool_data(
    replicas=2,
    gpu={"count": 2},
    profile={"inline": {"t0": 0.02, "t1": 0, "t2": 0, "c1": 0.0001, "c2": 0, "kvTokens": 50_000}},
    endpoints=[{"url": "http://a:1", "apiKeySecretRef": {"name": "s", "key": "k"}}],
    placement={"tolerations": [{"key": "gpu"}]},
)
WORKFLOW = workflow_data(
    pools={"names": ["a100"]},
    slo={"deadlineSeconds": 30, "classes": [{"name": "gold", "deadlineSeconds": 20}]},
    tenants=[{"name": "a", "sloClass": "gold", "weight": 2}],
    stages=[
        {"name": "link", "kind": "SchemaLinking"},
        {
            "name": "candidates",
            "kind": "CandidateGeneration",
            "after": ["link"],
            "sampling": {"temperature": 1},
        },
    ],
    scheduling={"policy": "RoundRobin+Urgency", "alpha": {"seed": 0.3, "min": 0, "max": 1}},
)

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["a100", "gold", "link", "HexGenFlow", "http://h", "name", "spec"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [above] if above else []
    if isinstance(value, dict):
        found += [place for key, item in value.items() for place in places(item, (*above, key))]
    if isinstance(value, list):
        found += [place for index, item in enumerate(value) for place in places(item, (*above, index))]
    return found


@st.composite
def spoilt(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a resource with up to three of its values taken out, replaced, or given beside another name."""
    data: dict[str, Any] = copy.deepcopy(draw(st.sampled_from([POOL, WORKFLOW])))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(data)))
        parent: Any = data
        for step in place[:-1]:
            parent = parent[step]
        change = draw(st.sampled_from(["replace", "remove", "rename"]))
        if change == "replace" or isinstance(parent, list):
            parent[place[-1]] = draw(anything)
        elif change == "remove":
            del parent[place[-1]]
        else:
            parent[draw(st.text(min_size=1, max_size=12))] = parent.pop(place[-1])
    return data


def refusal(load: Callable[[], object]) -> ResourceError | None:
    """Return why ``load`` refuses, or None; any other exception is a defect."""
    try:
        load()
    except ResourceError as error:
        return error
    return None


@settings(max_examples=300, deadline=None)
@given(spoilt())
def test_a_spoilt_resource_is_taken_or_refused_in_words(data: dict[str, Any]) -> None:
    error = refusal(lambda: parse_resource(data))
    if error is None:
        resource = parse_resource(data)
        assert (
            type(resource).model_validate(resource.model_dump(by_alias=True, exclude_unset=True)) == resource
        )
    else:
        assert error.problems
        assert all(problem.message and "\n" not in str(problem) for problem in error.problems)


@settings(max_examples=100, deadline=None)
@given(st.lists(spoilt() | anything, max_size=3))
def test_a_file_of_anything_is_taken_or_refused_in_words(documents: list[Any]) -> None:
    text = "\n---\n".join(json.dumps(document) for document in documents)
    error = refusal(lambda: load_text(text))
    assert error is None or str(error)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab:-[]{}#&*!|>'\"%@`\n\t ,?0.<\x85\u2028\x00"), max_size=60))
def test_any_text_is_refused_in_words(text: str) -> None:
    error = refusal(lambda: load_text(text))
    assert error is not None
    assert str(error)
