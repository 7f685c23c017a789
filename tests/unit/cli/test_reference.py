from pathlib import Path

from hexflow_cli.exitcode import ExitCode
from hexflow_cli.reference import page

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m hexflow_cli.reference > docs/reference/cli.md"
    )


def test_every_exit_code_is_explained() -> None:
    for code in ExitCode:
        assert f"| {int(code)} | {code.name.capitalize()} | " in page()
