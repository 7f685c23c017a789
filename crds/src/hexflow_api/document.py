"""YAML text to plain documents that remember the line of every field.

Reads what ``kubectl`` reads and as it reads it: a bare ``yes`` is a boolean, a date is a string. Knows
YAML, and nothing of what the documents mean.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hexflow_api.problem import Problem

Place = tuple[str | int, ...]
"""Where a value is in a document: keys and indexes from the root."""

MAX_VALUES: Final = 200_000
"""Values in one file, aliases expanded; more is a mistake or an attack."""
MAX_DEPTH: Final = 64
"""Levels of nesting; Kubernetes objects need a dozen."""

_TAG: Final = "tag:yaml.org,2002:"
_OLD_BOOLEANS: Final = {"yes": True, "on": True, "no": False, "off": False}
_MERGE: Final = "<<"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Hold one YAML document as plain data."""

    data: Any
    file: str
    lines: dict[Place, int]
    """Line of each place, counted from one: of the key for fields, of the item for lists."""

    def line(self, place: Place) -> int | None:
        """Return the line of ``place``, or of the nearest place around it that the file has."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)


def read_documents(text: str, *, file: str, problems: list[Problem]) -> list[Document]:
    """Return the documents of ``text``; what is wrong with it as YAML goes to ``problems``."""
    documents = []
    budget = _Budget(MAX_VALUES)
    try:
        for node in _nodes(text):
            reader = _Reader(file=file, problems=problems, budget=budget)
            data = reader.value(node, ())
            if data is not None:
                documents.append(Document(data=data, file=file, lines=reader.lines))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        what = ", ".join(part for part in (error.context, error.problem) if part)
        problems.append(Problem(file=file, line=line, message=f"not YAML: {what}{_hint(text, line)}"))
    except (YAMLError, _TooLargeError) as error:
        problems.append(Problem(file=file, message=f"not YAML that can be read: {_first_line(error)}"))
    except RecursionError:
        problems.append(Problem(file=file, message="not YAML that can be read: it is nested too deeply"))
    return documents


def _nodes(text: str) -> Iterator[Node]:
    yield from YAML(typ="safe", pure=True).compose_all(text)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _hint(text: str, line: int | None) -> str:
    lines = text.splitlines()
    if line is not None and line <= len(lines) and "\t" in lines[line - 1]:
        return " (line holds a tab; indent with spaces)"
    return ""


class _TooLargeError(Exception):
    pass


class _Budget:
    def __init__(self, values: int) -> None:
        self.left = values

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooLargeError(f"it expands to more than {MAX_VALUES} values")


class _Reader:
    """Turn one node graph into plain data."""

    def __init__(self, *, file: str, problems: list[Problem], budget: _Budget) -> None:
        self.lines: dict[Place, int] = {}
        self._file, self._problems, self._budget = file, problems, budget

    def value(self, node: Node | None, place: Place) -> Any:
        if node is None:
            return None
        self._budget.spend()
        if len(place) > MAX_DEPTH:
            raise _TooLargeError("it is nested too deeply")
        self.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, MappingNode):
            return self._mapping(node, place)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)  # noqa: S101 - there is no fourth kind of node
        return self._scalar(node, place)

    def _mapping(self, node: MappingNode, place: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self._complain("a key must be plain text", line, place)
                continue
            key = str(key_node.value)
            if key == _MERGE and key_node.style is None:
                parts = value_node.value if isinstance(value_node, SequenceNode) else [value_node]
                for part in parts:
                    found = self.value(part, place)
                    merged = (found if isinstance(found, dict) else {}) | merged
                continue
            if key in result:
                self._complain(f"'{key}' is given twice; keep one of the two", line, (*place, key))
                continue
            self.lines[(*place, key)] = line
            result[key] = self.value(value_node, (*place, key))
        return merged | result

    def _scalar(self, node: ScalarNode, place: Place) -> Any:
        text, tag = str(node.value), str(node.tag).removeprefix(_TAG)
        if node.style is None and text.lower() in _OLD_BOOLEANS:
            return _OLD_BOOLEANS[text.lower()]
        try:
            if tag == "null":
                return None
            if tag == "bool":
                return text.lower() == "true"
            if tag == "int":
                return int(text.replace("_", ""), 0 if re.match(r"[-+]?0[box]", text) else 10)
            if tag == "float":
                return self._finite(text, node, place)
        except ValueError:
            return text
        return text

    def _finite(self, text: str, node: ScalarNode, place: Place) -> float | None:
        number = float(re.sub(r"^([-+]?)\.(inf|nan)$", r"\1\2", text.replace("_", ""), flags=re.IGNORECASE))
        if math.isfinite(number):
            return number
        self._complain("must be a finite number", node.start_mark.line + 1, place)
        return None

    def _complain(self, message: str, line: int, place: Place) -> None:
        self._problems.append(Problem(file=self._file, line=line, path=field_path(place), message=message))


def field_path(place: Place) -> str:
    """Return ``place`` as people write it: ``spec.stages[1].after[0]``."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text
