from typing import Any

import pytest

from hexflow_api.tuned import Outcome, Tuned, TunedParameters, read_tuned


@pytest.mark.parametrize(
    "tuned",
    [
        Tuned(),
        Tuned(in_force=TunedParameters(values={"alpha": 0.4, "beta": 2.0}, since="2026-11-30T07:00:00Z")),
        Tuned(
            recommended=TunedParameters(values={"alpha": 0.4}),
            outcome=Outcome(reason="TooFewQueries", message="3 of 100"),
        ),
    ],
)
def test_what_is_written_is_read(tuned: Tuned) -> None:
    assert read_tuned({"data": tuned.as_data()}) == tuned


@pytest.mark.parametrize("config_map", [None, {}, {"data": None}, {"data": {"other": "x"}}])
def test_where_nothing_was_written_nothing_is_read(config_map: Any) -> None:
    assert read_tuned(config_map) == Tuned()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 10_000,
        '{"parameters": 7}',
        '{"parameters": {"alpha": "x"}}',
        '{"parameters": {"alpha": true}}',
        '{"parameters": {"alpha": NaN}}',
    ],
)
def test_what_cannot_be_read_counts_as_absent(text: str) -> None:
    assert read_tuned({"data": {"parameters.json": text, "outcome.json": text}}) == Tuned()


def test_numbers_beside_nonsense_are_read() -> None:
    read = read_tuned({"data": {"recommended.json": '{"parameters": {"a": 1, "b": null}, "since": 7}'}})
    assert read.recommended == TunedParameters(values={"a": 1.0})
