"""A policy knows what it is told: no clock, no randomness, nothing that differs from one process to the next."""

import ast
from pathlib import Path

import pytest

import hexflow_scheduler

KERNEL = Path(hexflow_scheduler.__file__).parent
RULES = sorted(path for folder in ("dispatch", "ordering") for path in (KERNEL / folder).glob("*.py"))
HARMLESS = {"collections", "dataclasses", "functools", "heapq", "math", "operator", "typing"}
"""What rules import of the standard library; none of it looks outside."""
UNSTEADY = {"hash", "id", "input", "open", "print", "vars"}
"""Built-in functions whose result depends on the process, or that do something to the world."""


def offences(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [name.name for name in names if name.name.split(".")[0] not in HARMLESS]
            case ast.ImportFrom(module=str(module)):
                if module.split(".")[0] not in {*HARMLESS, "hexflow_scheduler"}:
                    found.append(module)
            case ast.Call(func=ast.Name(id=name)) if name in UNSTEADY:
                found.append(f"{name}()")
            case ast.For(iter=ast.Set() | ast.SetComp()) | ast.comprehension(iter=ast.Set() | ast.SetComp()):
                found.append("the order of a set")
    return found


@pytest.mark.parametrize("path", RULES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_rule_reads_a_clock_or_draws_at_random(path: Path) -> None:
    assert offences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "offence"),
    [
        ("import time", "time"),
        ("from random import random", "random"),
        ("import os.path", "os.path"),
        ("x = hash('a')", "hash()"),
        ("y = [n for n in {1, 2}]", "the order of a set"),
    ],
)
def test_this_check_can_fail(source: str, offence: str) -> None:
    assert offences(source) == [offence]
