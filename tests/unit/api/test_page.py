"""The reference page is generated, fresh, and leaves no field unexplained."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from hexflow_api import GPUPool, TextToSQLWorkflow

ROOT = Path(__file__).parents[3]


def test_the_committed_page_is_what_the_script_writes() -> None:
    done = subprocess.run([sys.executable, ROOT / "crds" / "describe_resources.py", "--check"], check=False)
    assert done.returncode == 0, "stale: run make generate"


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models(field.annotation)
    for part in get_args(annotation):
        yield from models(part)


def test_every_field_of_a_spec_has_a_meaning() -> None:
    unexplained = {
        f"{model.__name__}.{name}"
        for kind in (GPUPool, TextToSQLWorkflow)
        for model in models(kind.model_fields["spec"].annotation)
        for name, field in model.model_fields.items()
        if not field.description
    }
    assert unexplained == set()


def test_every_list_map_and_text_is_bounded() -> None:
    """The API server refuses a schema whose rules could run for long over unbounded values."""

    def unbounded(schema: Any, place: str) -> Iterator[str]:
        if isinstance(schema, dict):
            kind = schema.get("type")
            if kind == "array" and "maxItems" not in schema:
                yield f"{place}: list"
            if kind == "string" and not {"maxLength", "enum", "const"} & set(schema):
                yield f"{place}: text"
            for key, part in schema.items():
                yield from unbounded(part, f"{place}.{key}")
        elif isinstance(schema, list):
            for part in schema:
                yield from unbounded(part, place)

    for kind in (GPUPool, TextToSQLWorkflow):
        definitions = kind.model_json_schema(by_alias=True)["$defs"]
        definitions.pop("ObjectMeta")
        assert list(unbounded(definitions, "")) == []


def test_the_readme_names_every_module() -> None:
    readme = (ROOT / "crds" / "README.md").read_text(encoding="utf-8")
    named = {
        name for line in readme.splitlines() if line.startswith("| `") for name in line.split("`")[1:-1:2]
    }
    modules = {path.stem for path in (ROOT / "crds" / "src" / "hexflow_api").glob("*.py")} - {"__init__"}
    assert modules <= named


def test_the_readmes_program_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (ROOT / "crds" / "README.md").read_text(encoding="utf-8")
    program = readme.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(ROOT)
    exec(compile(program, "crds/README.md", "exec"), {})
    assert "l40s l40s-qwen2.5-32b-tp4" in capsys.readouterr().out
