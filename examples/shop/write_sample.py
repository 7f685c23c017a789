"""Write what travels with the command line from the question files: the checked answers and the answer book.

    python examples/shop/write_sample.py

Each file in ``questions/`` holds a question, its answer, and what an emulated model says on the way there.
This script only lays the pieces out; it computes no answer. A test fails while its output is not committed.
"""

import io
import json
import textwrap
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq
from ruamel.yaml.scalarstring import LiteralScalarString, SingleQuotedScalarString

HERE = Path(__file__).parent
REFERENCE_TIME = "2026-06-30T12:00:00Z"
WIDTH = 110

_BOOK_HEAD = """\
# Written by examples/shop/write_sample.py from examples/shop/questions/; change it there.
#
# What the emulated models say about the sample shop. Nothing here is computed: a question that is not in
# the book gets no answer. Some texts are wrong on purpose, as a model's are.
"""
_QUESTIONS_HEAD = """\
# Written by examples/shop/write_sample.py from examples/shop/questions/; change it there.
#
# The questions of the demo and their answers. Tests work each answer out a second time without SQL.
"""


def sample_files() -> dict[str, str]:
    """Return the name and the text of each file that this script writes."""
    sources = list(_sources())
    return {
        "questions.yaml": _QUESTIONS_HEAD + _yaml(_questions(sources)),
        "book.yaml": _BOOK_HEAD + _yaml({"book": 1, "entries": [_entry(source) for source in sources]}),
    }


def _sources() -> Iterator[Mapping[str, Any]]:
    for path in sorted((HERE / "questions").glob("*.yaml")):
        yield YAML(typ="safe", pure=True).load(path.read_text("utf-8"))


def _questions(sources: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {
        "questions": 1,
        "referenceTime": REFERENCE_TIME,
        "items": [
            {
                "id": source["id"],
                "tenant": source["tenant"],
                "question": source["question"],
                **({"evidence": source["evidence"]} if "evidence" in source else {}),
                **({"tags": source["tags"]} if "tags" in source else {}),
                **source["answer"],
            }
            for source in sources
            if source.get("demo", "answer" in source)
        ],
    }


def _entry(source: Mapping[str, Any]) -> Mapping[str, Any]:
    answer = source.get("answer")
    answers: dict[str, list[dict[str, str]]] = {
        "schema-linking": [{"text": _linking(source)}],
        "candidate": [
            {"text": _said(entry.get("reading", source["reading"]), entry["thought"], ending=_ending(entry))}
            for entry in source["candidates"]
        ],
        "correction": [
            {"when": entry["when"], "text": _said(entry["thought"], ending=_ending(entry))}
            for entry in source.get("corrections", [])
        ],
    }
    if answer is not None:
        again = "I set the failed statement aside and start again from the question."
        answers["correction"].append({"text": _said(again, source["reading"], ending=_fence(answer["sql"]))})
    if tests := source.get("tests"):
        answers["unit-tests"] = [{"text": json.dumps({"tests": [entry["test"] for entry in tests]})}]
        answers["choice"] = [_judged(entry, candidates=len(source["candidates"])) for entry in tests]
    ending = _fence(answer["sql"]) if answer is not None else _ending(source["candidates"][-1])
    answers["chat"] = [{"text": _said(source["reading"], ending=ending)}]
    return {
        "question": source["question"],
        "answers": {
            task: [{key: _block(text) for key, text in said.items()} for said in texts]
            for task, texts in answers.items()
            if texts
        },
    }


def _linking(source: Mapping[str, Any]) -> str:
    tables = [{"table": table, "columns": columns} for table, columns in source["tables"].items()]
    return json.dumps({"reasoning": _line(source["reading"]), "tables": tables}, ensure_ascii=False)


def _judged(entry: Mapping[str, Any], *, candidates: int) -> dict[str, str]:
    broken = entry.get("brokenBy", [])
    passes = [number for number in range(1, candidates + 1) if number not in broken]
    names = " and ".join(f"candidate {number}" for number in broken)
    reasoning = "I read each statement for this one point. " + (
        f"It is missed by {names}; the others do what the test says."
        if broken
        else "All of them do what the test says."
    )
    said = json.dumps({"reasoning": reasoning, "passes": passes})
    return {"when": f"Test: {entry['test']}", "text": said}


def _ending(entry: Mapping[str, Any]) -> str:
    if "unanswerable" in entry:
        return f"<unanswerable>{_line(entry['unanswerable'])}</unanswerable>"
    return _fence(entry["sql"])


def _fence(sql: str) -> str:
    return f"```sql\n{sql.strip()}\n```"


def _said(*paragraphs: str, ending: str) -> str:
    return "\n\n".join([*(textwrap.fill(_line(text), WIDTH - 14) for text in paragraphs), ending])


def _line(text: str) -> str:
    return " ".join(text.split())


def _block(text: str) -> str:
    if "\n" in text:
        return LiteralScalarString(text)
    return SingleQuotedScalarString(text) if '"' in text else text


def _yaml(content: Mapping[str, Any]) -> str:
    yaml = YAML()
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    yaml.dump(_rows_in_lines(content), text)
    # The blanks at the ends of folded lines mean nothing, and linters mind them.
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _rows_in_lines(content: Any) -> Any:
    """Write each row of an answer on one line, and statements as blocks."""
    if isinstance(content, Mapping):
        return {key: _rows_in_lines(value) for key, value in content.items()}
    if isinstance(content, list) and all(isinstance(value, str | int | float | None) for value in content):
        return _flow(content)
    if isinstance(content, list):
        return [_rows_in_lines(value) for value in content]
    return _block(content) if isinstance(content, str) else content


def _flow(values: list[Any]) -> Any:
    row = CommentedSeq(values)
    row.fa.set_flow_style()
    return row


def main() -> None:
    """Write the files into the package."""
    for name, text in sample_files().items():
        Path(str(files("hexflow_cli.sample").joinpath(name))).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
