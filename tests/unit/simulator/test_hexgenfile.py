"""HexGen-Flow's files: steps become stages, side by side or in a row as their authors ran them."""

import json
from pathlib import Path
from typing import Any

import pytest

from hexflow_simulator.arrivals import Poisson
from hexflow_simulator.chess import STEPS
from hexflow_simulator.complaint import InvalidTrace
from hexflow_simulator.hexgenfile import read_hexgen
from hexflow_simulator.query import SimulatedCall

ORDER = (
    "Information Retriever",
    "extract_keywords",
    *("Information Retriever",) * 3,
    *("generate_candidate_llama-agent",) * 2,
    *("revise",) * 2,
    "unit_tester",
    "generate_unit_test",
    "unit_tester",
    *("evaluate",) * 3,
    "unit_tester",
)


def a_workflow(*steps: str) -> dict[str, Any]:
    return {
        "Text2SQLRequest": [
            {"step": step, "input_length": 10_000 + place, "output_length": 5 + place}
            for place, step in enumerate(steps)
        ]
    }


def written(folder: Path, data: object) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps(data, indent=1))
    return path


def chain(call: SimulatedCall) -> int:
    return 1 + sum(chain(later) for later in call.then)


def test_steps_become_stages_in_their_order(tmp_path: Path) -> None:
    (stages,) = read_hexgen(written(tmp_path, [a_workflow(*ORDER)])).workflows
    assert [(stage.name, len(stage.calls), chain(stage.calls[0])) for stage in stages] == [
        ("retriever", 1, 1),
        ("keywords", 1, 1),
        ("retriever-again", 1, 3),
        ("candidate", 2, 1),
        ("revise", 1, 2),
        ("tester", 1, 1),
        ("unit-tests", 1, 1),
        ("tester-2", 1, 1),
        ("evaluate", 3, 1),
        ("tester-3", 1, 1),
    ]
    assert {stage.name for stage in stages} == set(STEPS)
    drafts = stages[3].calls
    assert [(call.prompt_tokens, call.output_tokens) for call in drafts] == [(10_005, 10), (10_006, 11)]
    assert [call.prefix[0].tokens for call in drafts] == [9158, 5292]
    assert stages[4].calls[0].then[0].prompt_tokens == 10_008


def test_workflows_become_queries_as_often_as_wanted(tmp_path: Path) -> None:
    file = read_hexgen(written(tmp_path, [a_workflow(*ORDER), a_workflow(*ORDER[2:])]))
    queries = list(file.queries(Poisson(0.5), 1, model="coder", count=5, base_seconds=10.0))
    assert len({query.query_id for query in queries}) == 5
    assert [query.stages for query in queries[:2]] == [query.stages for query in queries[2:4]]
    assert (queries[0].slo_seconds, queries[0].base_seconds) == (50.0, 10.0)
    assert len(list(file.queries(Poisson(0.5), 1, model="coder"))) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "F: an empty list; give a file with at least one workflow"),
        ("", "F: no trace of HexGen-Flow (Input data was truncated)"),
        ('[\n{"Text2SQLRequest": [}]', "F:2: no trace of HexGen-Flow (JSON is malformed"),
        ('[{"Text2SQLRequest": []}]', "F: no trace of HexGen-Flow (Expected `array` of length >= 1 - at `$[0].Text2SQLRequest`"),
        ('{"a": 1}', "F: no trace of HexGen-Flow (Expected `array`, got `object`)"),
        ('[{"Text2SQLRequest": [{"step": "revise", "input_length": -1, "output_length": 2}]}]', "F: no trace of HexGen-Flow (Expected `int` >= 1 - at `$[0].Text2SQLRequest[0].input_length`"),
        ('[{"Text2SQLRequest": [{"step": "guess", "input_length": 1, "output_length": 2}]}]', "F: workflow 0 has a step 'guess'; rename it to one of: Information Retriever"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_what_to_do(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(InvalidTrace) as caught:
        read_hexgen(path)
    assert str(caught.value).replace(str(path), "F").startswith(said)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrace, match="cannot be read"):
        read_hexgen(tmp_path / "none.json")
