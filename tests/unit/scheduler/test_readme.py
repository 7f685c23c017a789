"""The example of the README runs and prints what it says."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "scheduler/README.md"


def test_the_example_prints_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = README.read_text(encoding="utf-8")
    found = re.search(
        r"## hexflow_scheduler\n\n```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", page, flags=re.DOTALL
    )
    assert found is not None
    code, output = found.groups()
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out.splitlines() == [line.strip() for line in output.splitlines()]
