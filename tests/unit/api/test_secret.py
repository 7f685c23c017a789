"""Secrets lie as the kubelet would lay them, for the owner's eyes only."""

import stat
from pathlib import Path

import pytest

from hexflow_api import SecretKeyRef, SecretMissing, absolute_dsn, read_secret, secret_refs, write_secrets
from hexflow_api.manifest import Secret
from support.resources import a_pool, a_secret, a_workflow, resources_of


def ref(name: str = "shop", key: str = "dsn") -> SecretKeyRef:
    return SecretKeyRef(name=name, key=key)


def test_secrets_are_written_and_read_back(tmp_path: Path) -> None:
    write_secrets(resources_of(a_pool(), a_secret("keys", a="one", b="two\n")), tmp_path / "s")
    assert read_secret(tmp_path / "s", ref("keys", "a")) == "one"
    assert read_secret(tmp_path / "s", ref("keys", "b")) == "two"


def test_nobody_else_may_read_them(tmp_path: Path) -> None:
    top = tmp_path / "s"
    write_secrets(resources_of(a_secret("keys", a="one")), top)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (top, top / "keys", top / "keys" / "a")]
    assert modes == [0o700, 0o700, 0o600]


def test_writing_again_replaces_and_leaves_nothing_beside(tmp_path: Path) -> None:
    for value in ("one", "two"):
        write_secrets(resources_of(a_secret("keys", a=value)), tmp_path)
    assert read_secret(tmp_path, ref("keys", "a")) == "two"
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["a"]


def test_secrets_of_another_namespace_stay_out(tmp_path: Path) -> None:
    write_secrets(
        resources_of(a_pool(), a_secret("keys", a="one"), a_secret("keys", namespace="b", a="two")), tmp_path
    )
    assert read_secret(tmp_path, ref("keys", "a")) == "one"


def test_a_databases_relative_path_starts_at_the_folder_of_its_file(tmp_path: Path) -> None:
    secret = Secret(name="shop", data={"dsn": "sqlite:///db/shop.sqlite"}, folder=tmp_path)
    write_secrets(resources_of(a_pool(), a_workflow(), secret), tmp_path / "s")
    assert read_secret(tmp_path / "s", ref()) == f"sqlite:///{tmp_path}/db/shop.sqlite"


@pytest.mark.parametrize(
    ("dsn", "absolute"),
    [
        ("sqlite:///shop.sqlite", "sqlite:////data/shop.sqlite"),
        ("sqlite:////srv/shop.sqlite", "sqlite:////srv/shop.sqlite"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("postgresql://h/db", "postgresql://h/db"),
        ("", ""),
    ],
)
def test_only_relative_paths_of_sqlite_change(dsn: str, absolute: str) -> None:
    assert absolute_dsn(dsn, folder=Path("/data")) == absolute


def test_a_missing_secret_says_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(SecretMissing, match="Secret shop has no key dsn: add a v1 Secret of that name"):
        read_secret(tmp_path, ref())


def test_an_empty_or_unreadable_secret_says_so_without_its_value(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    for content, message in (
        (b"\n", "is empty"),
        (b"pw\xff", "is not UTF-8"),
        (b"x" * 1_100_000, "over 1 MiB"),
    ):
        (tmp_path / "shop" / "dsn").write_bytes(content)
        with pytest.raises(SecretMissing, match=message) as error:
            read_secret(tmp_path, ref())
        assert "pw" not in str(error.value)
    with pytest.raises(SecretMissing, match="cannot be read"):
        read_secret(tmp_path / "shop" / "dsn", ref())


def test_every_secret_that_a_resource_names_is_found_with_its_field() -> None:
    pool = a_pool(
        model={"name": "m-7b", "hfTokenSecretRef": {"name": "hf", "key": "t"}},
        endpoints=[{"url": "http://h", "apiKeySecretRef": {"name": "llm", "key": "k"}}],
    )
    workflow = a_workflow(tenants=[{"name": "a", "apiKeySecretRef": {"name": "keys", "key": "a"}}])
    assert [(path, str(each)) for path, each in (*secret_refs(pool), *secret_refs(workflow))] == [
        ("spec.model.hfTokenSecretRef", "hf/t"),
        ("spec.endpoints[0].apiKeySecretRef", "llm/k"),
        ("spec.databases[0].dsnSecretRef", "shop/dsn"),
        ("spec.tenants[0].apiKeySecretRef", "keys/a"),
    ]
