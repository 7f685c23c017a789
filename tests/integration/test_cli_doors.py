"""The small subcommands, and those that hand their arguments to another part's own parser unchanged."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.laptop import environment, hexflow


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("emulate", "serve", "--help"), 0, "--scheduling-policy"),
        (("emulate", "serve"), 2, "no model was named"),
        (("router", "--help"), 0, "--secrets-dir"),
        (("router", "--port", "abc"), 2, "--port 'abc'"),
        (("router", "--config", "no-such-folder", "--port", "0", "--admin-port", "0"), 2, "no-such-folder"),
        (("version",), 0, "hexflow"),
        (("--help",), 0, "demo"),
        ((), 2, "Usage"),
        (("nonsense",), 2, "nonsense"),
        (("up", "--port", "http"), 2, "--port"),
        (("up", "--port", "70000"), 2, "from 1 to 65535"),
        (("up", "--host", "no such host"), 2, "no address of this machine"),
        (("up", "--host", "192.0.2.1"), 2, "no address of this machine"),
        (("up", "--time-scale", "0"), 2, "--time-scale"),
        (("up", "--book", "pyproject.toml"), 2, "pyproject.toml"),
        (("demo", "--book", "pyproject.toml"), 2, "pyproject.toml"),
        (("ask", "\udcff"), 2, "no UTF-8 text (byte 0)"),
        (("up", "--book", "no-such-book.yaml"), 2, "no-such-book.yaml"),
        (("demo", "--questions", "0"), 2, "--questions"),
    ],
)
def test_a_command_ends_with_its_code_and_its_words(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = hexflow(*arguments, state_dir=tmp_path)
    assert done.code == code, done.err
    assert words in done.out + done.err
    assert "Traceback" not in done.err


def test_the_version_is_there_for_programs_too(tmp_path: Path) -> None:
    found = hexflow("version", "--json", state_dir=tmp_path).json()
    assert {"hexflow", "python", "platform", "fastapi"} <= set(found)


def test_a_state_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = hexflow("up", state_dir=tmp_path / "file")
    assert done.code == 5
    assert "HEXFLOW_STATE_DIR" in done.err


@pytest.mark.parametrize(
    ("package", "command", "code"),
    [("typer", "version", 5), ("sqlglot", "demo", 5), ("uvicorn", "router", 5), ("uvicorn", "version", 0)],
)
def test_a_missing_extra_is_one_sentence_that_says_what_to_install(
    tmp_path: Path, package: str, command: str, code: int
) -> None:
    start = f"import sys; sys.modules[{package!r}] = None; sys.argv = ['hexflow', {command!r}]"
    done = subprocess.run(
        [sys.executable, "-c", f"{start}; from hexflow_cli import main; main()"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr == "" or f"needs the package {package}" in done.stderr
    assert "Traceback" not in done.stderr
