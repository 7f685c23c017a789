"""Whatever a resource holds, we and a real API server agree on whether it is right."""

import copy
import json
import random
from typing import Any

import pytest

from hexflow_api import ResourceError, parse_resource
from support.apiserver import ApiServer
from support.definitions import served_at
from support.goodresources import GOOD
from support.kubernetes import ApiError

pytestmark = pytest.mark.usefixtures("definitions")

SMALL = [data for data in GOOD.values() if len(json.dumps(data)) < 20_000]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 1.5, 1e6, 1e-9, 10**13),
    *("", "a", "a100", "gold", "link", "HexGenFlow", "HexGenFlow+FCFS", "8Gi", "1.5Gi", "-1", "A-b.c", "a_b"),
    *("Ä", "x" * 64, "x" * 300, "@daily", "* * * * *", "..", "../x", "\n", "a\n", "hf://x"),
    *("http://h", "http://h:1/v1", "https://a b", "http://[::1]-1", "http://h/%6"),
    *([], {}, ["a"], [{}], [1], [None], {"a": 1}, {"a": None}, {"name": "a"}, {"name": "a", "key": "b"}),
    *({"value": 0.5}, {"value": 9}, {"seed": 1, "min": 0, "max": 2}, {"matchLabels": {"a": "b"}}),
]
"""Not 2.0, which the API server takes for a whole number everywhere but in replicas, where its scale subresource does not."""
ROUNDS, OBJECTS = 8, 50

Place = tuple[str | int, ...]


def places(value: Any, above: Place = ()) -> list[Place]:
    found = [above] if above else []
    if isinstance(value, dict):
        found += [place for key, item in value.items() for place in places(item, (*above, key))]
    if isinstance(value, list):
        found += [place for index, item in enumerate(value) for place in places(item, (*above, index))]
    return found


def value_at(data: Any, place: Place) -> Any:
    for step in place:
        data = data[step]
    return data


ELSEWHERE: dict[str | int, list[Any]] = {}
"""Name of a field -> the values that it has in right objects."""
for _data in SMALL:
    for _place in places(_data):
        ELSEWHERE.setdefault(_place[-1], []).append(value_at(_data, _place))
FIELDS = sorted({step for data in SMALL for place in places(data) for step in place if isinstance(step, str)})


def spoilt(draw: random.Random) -> dict[str, Any]:
    """Return a right object with one or two of its values exchanged, taken out, doubled, or given a neighbour."""
    data = copy.deepcopy(draw.choice(SMALL))
    for _ in range(draw.randint(1, 2)):
        below = [each for each in places(data) if each[0] == "spec"]
        if not below:
            break
        place = draw.choice(below)
        parent = value_at(data, place[:-1])
        value, chance = copy.deepcopy(draw.choice(VALUES)), draw.random()
        if draw.random() < 0.6 and place[-1] in ELSEWHERE:
            parent[place[-1]] = copy.deepcopy(draw.choice(ELSEWHERE[place[-1]]))
        elif chance < 0.15 and isinstance(parent, dict):
            parent.pop(place[-1], None)
        elif chance < 0.25 and isinstance(parent, list):
            parent.append(copy.deepcopy(draw.choice(parent)))
        elif chance < 0.4 and isinstance(parent, dict):
            parent[draw.choice(FIELDS)] = value
        elif chance < 0.6 and isinstance(parent[place[-1]], str):
            parent[place[-1]] = misspelt(parent[place[-1]], draw)
        else:
            parent[place[-1]] = value
    return data


def misspelt(text: str, draw: random.Random) -> str:
    index = draw.randrange(len(text) + 1)
    return text[:index] + draw.choice("AZ09-._/@: %#?é\n") + text[index + 1 :]


def our_refusal(data: dict[str, Any]) -> str | None:
    try:
        parse_resource(data)
    except ResourceError as error:
        return str(error)
    return None


def served_refusal(api_server: ApiServer, data: dict[str, Any]) -> str | None:
    try:
        api_server.api.create(served_at(data["kind"]), data, dryRun="All", fieldValidation="Strict")
    except ApiError as error:
        assert error.status in (400, 422), error  # noqa: PT017 - anything else is no verdict
        return error.message
    return None


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_we_refuse_what_the_api_server_refuses_and_nothing_else(api_server: ApiServer, seed: int) -> None:
    draw = random.Random(seed)
    verdicts = [
        (data, our_refusal(data), served_refusal(api_server, data))
        for data in (spoilt(draw) for _ in range(OBJECTS))
    ]
    assert [each for each in verdicts if (each[1] is None) != (each[2] is None)] == []
    refused = sum(ours is not None for _, ours, _ in verdicts)
    assert 0.1 < refused / OBJECTS < 0.9
