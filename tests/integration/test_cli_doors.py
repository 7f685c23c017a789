"""The small subcommands, and those that hand their arguments to another part's own parser unchanged."""

from pathlib import Path

import pytest

from support.laptop import hexflow


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
        (("up", "--time-scale", "0"), 2, "--time-scale"),
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
