"""What `--help` says can be read on a terminal of 80 columns."""

import re

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from hexflow_cli.app import app

COMMANDS = sorted({*get_command(app).commands} - {"emulate", "router", "operator"})  # type: ignore[attr-defined]
"""Those whose help is in a box; three hand theirs on to the program behind them."""


@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_of_a_help_is_cut(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, [command, "--help"]).output
    assert "Usage:" in shown
    assert (
        re.findall(r"\S*\w…", shown.replace("HEXFLOW_ROUTER_…", "").replace("HEXFLOW_EMULATOR_…", "")) == []
    )


def test_the_help_of_simulate_shows_a_command_that_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, ["simulate", "--help"]).output
    assert "hexflow simulate --fleet fleet.yaml --trace requests.csv" in shown
