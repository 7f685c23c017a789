from typing import Any

import pytest

from hexflow_api import TextToSQLWorkflow
from hexflow_api.tuned import Tuned, TunedParameters
from hexflow_router.parameters import ParameterBook, unusable
from support.resources import a_workflow

OPEN = {"seed": 0.5, "min": 0.2, "max": 0.9}
SINCE = "2026-11-30T07:00:00Z"


def workflow(mode: str = "Auto", **alpha: Any) -> TextToSQLWorkflow:
    scheduling = {"policy": "HexGenFlow", "alpha": alpha or OPEN}
    return a_workflow("shop", tuning={"mode": mode}, scheduling=scheduling)


def config_map(**values: float) -> dict[str, Any]:
    return {"data": Tuned(in_force=TunedParameters(values=values, since=SINCE)).as_data()}


def told(book: ParameterBook, about: TextToSQLWorkflow) -> dict[str, tuple[float, str, str | None]]:
    return {name: (each.value, each.source, each.since) for name, each in book.of(about).items()}


def test_what_was_tuned_wins_over_the_seed_and_yields_to_a_pinned_value() -> None:
    book = ParameterBook()
    assert told(book, workflow()) == {"alpha": (0.5, "Seed", None)}
    book.take([workflow()], {"shop": config_map(alpha=0.7, beta=2.0)})
    assert told(book, workflow()) == {"alpha": (0.7, "Tuned", SINCE), "beta": (2.0, "Tuned", SINCE)}
    assert told(book, workflow(value=0.4))["alpha"] == (0.4, "Pinned", None)


def test_fairness_is_what_the_workflow_pins_whatever_a_config_map_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fair, plain = (
        a_workflow("shop", tuning={"mode": "Auto"}, scheduling=scheduling)
        for scheduling in ({"fairness": {"value": 1}}, {})
    )
    book = ParameterBook()
    assert told(book, fair) == {"fairness": (1.0, "Pinned", None)}
    book.take([fair], {"shop": config_map(exponent=4.0)})
    assert told(book, fair) == {"exponent": (4.0, "Tuned", SINCE), "fairness": (1.0, "Pinned", None)}
    for workflow in (fair, plain):
        book.take([workflow], {"shop": config_map(exponent=2.0, fairness=0.5)})
        assert "fairness is not tuned; pin it in the workflow" in book.problems[0]
        assert told(book, workflow)["exponent"] == (4.0, "Tuned", SINCE)
    assert "fairness" not in told(book, plain)
    assert caplog.text.count("fairness is not tuned") == 1


@pytest.mark.parametrize("mode", ["Off", "Recommend"])
def test_only_mode_auto_puts_it_in_force(mode: str) -> None:
    book = ParameterBook()
    book.take([workflow(mode)], {"shop": config_map(alpha=0.7)})
    assert told(book, workflow(mode)) == {"alpha": (0.5, "Seed", None)}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (config_map(alpha=0.1), "alpha must lie between 0.2 and 0.9, and is 0.1"),
        (config_map(alpha=0.95), "alpha must lie between"),
        (config_map(beta=2000.0), "beta must lie between 0.001 and 1000"),
        (config_map(exponent=2.0), "HexGenFlow has no parameter exponent"),
        ({"data": {"parameters.json": "{"}}, "no parameters that can be read"),
        (
            {"data": {"parameters.json": '{"parameters": {"alpha": "high"}}'}},
            "no parameters that can be read",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_whole_and_the_last_good_one_stays(
    bad: dict[str, Any], words: str
) -> None:
    book = ParameterBook()
    book.take([workflow()], {"shop": config_map(alpha=0.7)})
    book.take([workflow()], {"shop": bad})
    assert words in book.problems[0]
    assert told(book, workflow())["alpha"] == (0.7, "Tuned", SINCE)
    book.take([workflow()], {"shop": config_map(alpha=0.6)})
    assert book.problems == ()
    assert told(book, workflow())["alpha"] == (0.6, "Tuned", SINCE)


def test_without_the_config_map_the_seed_is_in_force_again() -> None:
    book = ParameterBook()
    for gone in ({}, {"shop": {"data": {"recommended.json": "{}"}}}):
        book.take([workflow()], {"shop": config_map(alpha=0.7)})
        book.take([workflow()], gone)
        assert told(book, workflow()) == {"alpha": (0.5, "Seed", None)}


def test_what_was_good_under_wider_bounds_is_not_used_under_narrower_ones() -> None:
    book = ParameterBook()
    book.take([workflow()], {"shop": config_map(alpha=0.7)})
    narrow = workflow(seed=0.3, min=0.2, max=0.6)
    book.take([narrow], {"shop": config_map(alpha=0.7)})
    assert told(book, narrow) == {"alpha": (0.3, "Seed", None)}
    assert unusable(narrow, {"alpha": 0.6}) == []


def test_a_workflow_that_is_gone_is_forgotten() -> None:
    book = ParameterBook()
    book.take([workflow()], {"shop": config_map(alpha=0.1)})
    assert book.problems
    book.take([], {"shop": config_map(alpha=0.1)})
    assert book.problems == ()
