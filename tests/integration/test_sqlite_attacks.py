"""Every attack against a real file: through all layers, and against the engine layer alone."""

import hashlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hexflow_sql import (
    Database,
    Layers,
    Limits,
    StatementError,
    StatementFailed,
    StatementRefused,
    open_database,
)
from hexflow_sql.database.seal import Names, authorizer
from support.attacks import COULD_SPY, COULD_WRITE, NOT_PLAIN
from support.sql import a_sqlite_file

SCRIPT = """
CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);
CREATE TABLE "order items" (id INTEGER, "Unit Price" REAL);
CREATE TABLE secret (x TEXT);
CREATE VIEW v AS SELECT a FROM t;
CREATE INDEX i ON t (b);
CREATE VIRTUAL TABLE t_hidden USING fts5(x);
INSERT INTO t VALUES (1, 'one'), (2, 'two');
INSERT INTO secret VALUES ('top');
"""
LIMITS = Limits(seconds=5)
ENGINE_ALONE = Layers(parser=False, engine=True, resources=False)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the file to the whole module, and see at the end that no byte and no file has changed."""
    folder = tmp_path_factory.mktemp("attacked")
    path = a_sqlite_file(folder, SCRIPT)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    yield path
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [entry.name for entry in folder.iterdir()] == [path.name]


@pytest.fixture(autouse=True)
def _in_the_folder_of_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)  # what an attack writes by a relative name is seen by the fixture above


@pytest.fixture
async def guarded(file: Path) -> AsyncIterator[Database]:
    database = opened(file, Layers())
    yield database
    await database.close()


@pytest.fixture
async def engine_alone(file: Path) -> AsyncIterator[Database]:
    database = opened(file, ENGINE_ALONE)
    yield database
    await database.close()


def opened(file: Path, layers: Layers) -> Database:
    return open_database(
        name="attacked",
        dialect="sqlite",
        dsn=f"sqlite:///{file.name}",
        base_dir=file.parent,
        exclude=["secret", "t_hidden"],
        layers=layers,
    )


@pytest.mark.parametrize("name", COULD_WRITE)
async def test_all_layers_refuse_what_could_write(name: str, guarded: Database) -> None:
    with pytest.raises(StatementRefused):
        await guarded.execute(COULD_WRITE[name], LIMITS)


@pytest.mark.parametrize("name", COULD_WRITE)
async def test_the_engine_alone_refuses_what_could_write(name: str, engine_alone: Database) -> None:
    with pytest.raises(StatementFailed):
        await engine_alone.execute(COULD_WRITE[name], LIMITS)


@pytest.mark.parametrize("name", COULD_SPY)
async def test_the_engine_alone_refuses_what_reads_more_than_was_given(
    name: str, engine_alone: Database
) -> None:
    with pytest.raises(StatementFailed):
        await engine_alone.execute(COULD_SPY[name], LIMITS)


@pytest.mark.parametrize("name", [*COULD_SPY, *NOT_PLAIN])
async def test_all_layers_refuse_what_is_no_plain_query(name: str, guarded: Database) -> None:
    with pytest.raises(StatementError):
        await guarded.execute((COULD_SPY | NOT_PLAIN)[name], LIMITS)


@pytest.mark.parametrize(
    "name", [name for name, sql in COULD_WRITE.items() if "ATTACH" not in sql and "VACUUM" not in sql]
)
def test_read_only_mode_keeps_the_file_without_the_authorizer(name: str, file: Path) -> None:
    # What makes another file is left to the authorizer; some of the rest may succeed within the connection.
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    with suppress(sqlite3.Error, sqlite3.Warning):
        connection.execute(COULD_WRITE[name]).fetchall()
    connection.close()


@pytest.mark.parametrize("name", COULD_WRITE)
def test_the_authorizer_keeps_a_file_that_is_open_for_writing(name: str, tmp_path: Path) -> None:
    path = a_sqlite_file(tmp_path, SCRIPT)
    before = path.read_bytes()
    connection = sqlite3.connect(path)
    names = Names(readable=frozenset({"t", "order items", "v"}), hidden=frozenset({"secret"}))
    connection.set_authorizer(authorizer(names, None))
    with pytest.raises((sqlite3.Error, sqlite3.Warning)):
        connection.execute(COULD_WRITE[name]).fetchall()
    connection.close()
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


async def test_the_file_can_still_be_read(guarded: Database, engine_alone: Database) -> None:
    for database in (guarded, engine_alone):
        result = await database.execute(
            'SELECT a, b FROM t LEFT JOIN "order items" ON id = a ORDER BY a', LIMITS
        )
        assert result.rows == ((1, "one"), (2, "two"))
        assert (await database.execute("SELECT a FROM v ORDER BY a", LIMITS)).rows == ((1,), (2,))


async def test_a_view_over_a_hidden_table_is_not_shown(tmp_path: Path) -> None:
    leaks = "CREATE VIEW leak AS SELECT x FROM secret; CREATE VIEW half AS SELECT a, (SELECT max(x) FROM secret) AS top FROM t;"
    path = a_sqlite_file(tmp_path, SCRIPT + leaks)
    database = opened(path, Layers())
    schema = await database.schema()
    assert schema.table("leak") is None
    assert schema.table("half") is None  # its sample values would tell
    assert len(schema.notes) == 2
    with pytest.raises(StatementRefused):
        await database.execute("SELECT * FROM leak", LIMITS)
    await database.close()
