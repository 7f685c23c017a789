"""YAML as kubectl reads it, with the line of every field, and no way to exhaust the reader."""

from typing import Any

import pytest

from hexflow_api.document import MAX_VALUES, Document, field_path, read_documents
from hexflow_api.problem import Problem


def documents(text: str) -> list[Document]:
    problems: list[Problem] = []
    found = read_documents(text, file="f", problems=problems)
    assert problems == []
    return found


def read(text: str) -> Any:
    (document,) = documents(text)
    return document.data


def fault(text: str) -> str:
    problems: list[Problem] = []
    read_documents(text, file="f", problems=problems)
    (problem,) = problems
    return str(problem)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1_000", -1000),
        ("0x10", 16),
        ("0o17", 15),
        ("1.5", 1.5),
        ("6.4e-8", 6.4e-8),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("yes", True),
        ("Off", False),
        ("'yes'", "yes"),
        ("'1'", "1"),
        ("null", None),
        ("~", None),
        ("", None),
        ("2024-05-06", "2024-05-06"),
        ("12:30:45", "12:30:45"),
        ("v1.2", "v1.2"),
        ("|\n  a\n  b\n", "a\nb\n"),
    ],
)
def test_a_scalar_is_what_kubectl_makes_of_it(text: str, value: object) -> None:
    found = read(f"k: {text}\n")["k"]
    assert found == value
    assert type(found) is type(value)


def test_every_field_and_item_has_its_line() -> None:
    (document,) = documents("a:\n  b: 1\n  c:\n    - x\n    - d: 2\n")
    assert document.line(("a", "b")) == 2
    assert document.line(("a", "c", 1, "d")) == 5
    assert document.line(("a", "nothing", "there")) == 1


def test_empty_documents_are_passed_over() -> None:
    assert [document.data for document in documents("---\n---\n# nothing\n---\na: 1\n")] == [{"a": 1}]


def test_anchors_and_merges_are_expanded() -> None:
    assert read("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: *x\n") == {
        "a": {"p": 1, "q": 2},
        "b": {"p": 1, "q": 3},
        "c": {"p": 1, "q": 2},
    }


def test_a_bomb_of_aliases_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    assert fault(bomb) == f"f: not YAML that can be read: it expands to more than {MAX_VALUES} values"


@pytest.mark.parametrize(
    "text",
    ["[" * 1500, "a: " + "{a: " * 200 + "1" + "}" * 200, "&a [*a]"],
    ids=["brackets", "maps", "itself"],
)
def test_endless_nesting_is_refused(text: str) -> None:
    assert fault(text).startswith("f: not YAML that can be read: ")


def test_a_key_that_is_no_text_is_refused() -> None:
    assert fault("? [a, b]\n: 1\n") == "f:1: a key must be plain text"


def test_control_characters_are_refused() -> None:
    assert fault("a: \x00\n").startswith("f: not YAML that can be read: ")


def test_an_unknown_alias_is_told_with_its_line() -> None:
    assert fault("a: 1\nb: *nope\n").startswith("f:2: not YAML: ")


def test_a_place_is_written_as_people_write_it() -> None:
    assert field_path(("spec", "stages", 1, "after", 0)) == "spec.stages[1].after[0]"
    assert field_path(()) == ""
