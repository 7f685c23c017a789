from pathlib import Path

import pytest

from hexflow_operator.defaults import Defaults
from hexflow_operator.main import access, main
from hexflow_operator.settings import Settings, SettingsError


def test_a_flag_wins_over_the_environment_which_wins_over_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEXFLOW_OPERATOR_PORT", "9001")
    monkeypatch.setenv("HEXFLOW_OPERATOR_NAMESPACES", "red, blue")
    settings = Settings.from_arguments(["--port", "9002"])
    assert (settings.port, settings.namespaces) == (9002, ("red", "blue"))


def test_namespaces_are_named_with_commas_or_one_flag_each() -> None:
    settings = Settings.from_arguments(["--namespaces", "a,b", "--namespaces", "c"])
    assert settings.namespaces == ("a", "b", "c")


def test_without_flags_a_plan_fills_in_the_same_as_its_own_defaults() -> None:
    assert Settings.from_arguments([]).defaults == Defaults()


def test_what_cannot_be_used_is_named_by_its_flag() -> None:
    with pytest.raises(SettingsError, match="--port 'x'"):
        Settings.from_arguments(["--port", "x"])


def test_the_cluster_is_that_of_the_flag_then_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/there/config")
    assert access(Settings.from_arguments([])).kubeconfig == Path("/there/config")
    named = access(Settings.from_arguments(["--kubeconfig", "/here/config", "--context", "dev"]))
    assert (named.kubeconfig, named.context) == (Path("/here/config"), "dev")


def test_a_kubeconfig_that_is_not_there_is_one_readable_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--kubeconfig", str(tmp_path / "none"), "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("hexflow operator cannot start:")
    assert "--kubeconfig" in said
    assert "Traceback" not in said
