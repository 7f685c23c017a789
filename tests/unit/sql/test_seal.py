"""The authorizer, the watch and the cost limit, on bare connections."""

import sqlite3
import threading

import pytest

from hexflow_sql.database.heavy import HEAVY, bounded, mentioned
from hexflow_sql.database.seal import LimitedConnection, Names, authorizer, births
from hexflow_sql.database.watch import PREPARATION_QUESTIONS, Watch, Watchdog

NAMES = Names(readable=frozenset({"t", "v"}), hidden=frozenset({"secret"}))


def no_scratch() -> sqlite3.Connection:
    raise AssertionError("nothing is to be computed")


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE t (a); CREATE TABLE secret (x); CREATE VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1);"
    )
    return connection


def test_what_may_be_read_is_read(connection: sqlite3.Connection) -> None:
    connection.set_authorizer(authorizer(NAMES, None))
    assert connection.execute("WITH c AS (SELECT a FROM v) SELECT count(*) FROM c").fetchall() == [(1,)]
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM secret",
        "SELECT count(*) FROM secret",
        "WITH v AS (SELECT x FROM secret) SELECT * FROM v",
        "WITH secret AS (SELECT 1) SELECT count(*) FROM secret",
        "SELECT count(*) FROM sqlite_master",
        "SELECT load_extension('x')",
        "PRAGMA data_version",
    ],
)
def test_what_may_not_is_not(sql: str, connection: sqlite3.Connection) -> None:
    connection.set_authorizer(authorizer(NAMES, None))
    with pytest.raises(sqlite3.Error):
        connection.execute(sql)
    connection.close()


def test_virtual_tables_are_met_before_the_seal() -> None:
    names = Names(readable=frozenset({"docs"}), hidden=frozenset(), virtual=("docs",))
    assert [birth.name for birth in births(names)] == ["json_each", "json_tree", "docs"]


def test_functions_that_cannot_be_interrupted_are_not_taken() -> None:
    connection = LimitedConnection(":memory:")
    connection.create_function("regexp", 2, lambda *_: True)
    with pytest.raises(sqlite3.OperationalError, match="no such function"):
        connection.execute("SELECT 'a' REGEXP 'b'")
    connection.close()


def test_a_watch_knows_when_the_time_is_up() -> None:
    now = 100.0
    watch = Watch(clock=lambda: now, seconds=5)
    assert not watch.expired()
    now = 104.0
    watch.start()
    now = 108.9
    assert not watch.over
    now = 109.0
    assert watch.over
    assert watch.expired()
    assert not watch.prepares()


def test_a_stopped_watch_stops_at_once() -> None:
    watch = Watch(clock=lambda: 0.0, seconds=5)
    watch.stop()
    assert watch.expired()
    assert not watch.over
    assert watch.woken.is_set()


def test_preparation_may_ask_so_much_and_no_more() -> None:
    watch = Watch(clock=lambda: 0.0, seconds=5)
    assert all(watch.prepares() for _ in range(PREPARATION_QUESTIONS))
    assert not watch.prepares()
    assert watch.overasked


def test_a_watchdog_interrupts_until_the_statement_has_ended() -> None:
    interrupted = threading.Semaphore(0)
    watch = Watch(clock=lambda: 0.0, seconds=0.001)
    with Watchdog(watch, interrupt=interrupted.release, stuck=lambda: None):
        for _ in range(3):
            assert interrupted.acquire(timeout=10)


def test_a_watchdog_says_once_that_a_statement_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hexflow_sql.database.watch.GRACE_SECONDS", 0.05)
    told: list[str] = []
    stuck = threading.Event()

    def tell() -> None:
        told.append("stuck")
        stuck.set()

    count = threading.Semaphore(0)
    watch = Watch(clock=lambda: 0.0, seconds=0)
    with Watchdog(watch, interrupt=count.release, stuck=tell):
        assert stuck.wait(timeout=10)
        for _ in range(5):
            assert count.acquire(timeout=10)
    assert told == ["stuck"]


def test_a_watchdog_leaves_a_statement_that_ends_alone() -> None:
    interrupted = threading.Event()
    watch = Watch(clock=lambda: 0.0, seconds=3600)
    with Watchdog(watch, interrupt=interrupted.set, stuck=interrupted.set):
        pass
    assert not interrupted.is_set()


def test_heavy_functions_are_found_by_name() -> None:
    assert [heavy.name for heavy in mentioned("SELECT LTRIM(a, 'x'), Replace(a, b, c)")] == [
        "replace",
        "trim",
        "ltrim",
    ]
    assert mentioned("SELECT upper(a)") == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("instr", ("a" * 100_000, "b" * 100_000)),
        ("replace", ("a" * 100_000, "b" * 100_000, "c")),
        ("trim", (b"a" * 100_000, "b" * 100_000)),
        ("printf", ("%999999d", 1)),
        ("printf", ("%.999999999999999999999f", 1.0)),
        ("format", ("%*d", 999999, 1)),
        ("format", ("x" * 20_000,)),
    ],
)
def test_a_call_that_would_take_too_long_is_not_made(name: str, arguments: tuple[object, ...]) -> None:
    heavy = next(entry for entry in HEAVY if entry.name == name)
    with pytest.raises(Exception, match=name):
        bounded(heavy, expired=lambda: 0, scratch=no_scratch)(*arguments)


def test_no_call_is_made_after_the_time_is_up() -> None:
    heavy = next(entry for entry in HEAVY if entry.name == "instr")
    with pytest.raises(Exception, match="instr"):
        bounded(heavy, expired=lambda: 1, scratch=no_scratch)("a", "b")
