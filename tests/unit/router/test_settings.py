from pathlib import Path
from typing import Any

import pytest

from hexflow_router.settings import Settings, SettingsError


def test_flags_become_settings() -> None:
    settings = Settings.from_arguments(
        ["--config", "a.yaml", "--config", "b", "--port", "0", "--time-scale", "10", "--journal", "j.sqlite"]
    )
    assert settings.config == (Path("a.yaml"), Path("b"))
    assert settings.port == 0
    assert settings.time_scale == 10
    assert settings.journal == Path("j.sqlite")


def test_a_flag_wins_over_its_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXFLOW_ROUTER_PORT", "9000")
    monkeypatch.setenv("HEXFLOW_ROUTER_CONFIG", "one:two")
    assert Settings.from_arguments([]).port == 9000
    assert Settings.from_arguments([]).config == (Path("one"), Path("two"))
    assert Settings.from_arguments(["--port", "9001"]).port == 9001


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--port", "70000"], "--port '70000'"),
        (["--port", "eighty"], "--port 'eighty'"),
        (["--time-scale", "nan"], "--time-scale 'nan': write a finite number"),
        (["--time-scale", "0"], "--time-scale '0'"),
        (["--grace-seconds", "-1"], "--grace-seconds '-1'"),
        (["--log-level", "loud"], "--log-level 'loud'"),
    ],
)
def test_a_wrong_value_is_named_with_its_flag(arguments: Any, says: Any) -> None:
    with pytest.raises(SettingsError) as error:
        Settings.from_arguments(arguments)
    assert says in str(error.value)


def test_an_unknown_flag_ends_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Settings.from_arguments(["--prot", "1"])
    assert "--prot" in capsys.readouterr().err


IN_A_CLUSTER = ["--config-map", "hexflow-router", "--secrets-dir", "/secrets"]


def test_a_pod_is_told_its_namespace_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXFLOW_NAMESPACE", "team")
    assert Settings.from_arguments(IN_A_CLUSTER).namespace == "team"
    assert Settings.from_arguments([*IN_A_CLUSTER, "--namespace", "other"]).namespace == "other"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (IN_A_CLUSTER, "--config-map needs --namespace (or the variable HEXFLOW_NAMESPACE)"),
        ([*IN_A_CLUSTER[:2], "--namespace", "team"], "--config-map needs --secrets-dir"),
        ([*IN_A_CLUSTER, "--namespace", "team", "--config", "a.yaml"], "takes the place of --config"),
    ],
)
def test_what_a_cluster_needs_is_asked_for(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEXFLOW_NAMESPACE", raising=False)
    with pytest.raises(SettingsError, match=r"^--config-map") as error:
        Settings.from_arguments(arguments)
    assert says in str(error.value)
