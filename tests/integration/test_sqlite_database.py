"""SQLite files of every kind, through all layers."""

import asyncio
import math
import os
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hexflow_sql import (
    Database,
    DatabaseUnavailable,
    ForeignKey,
    Limits,
    StatementError,
    StatementFailed,
    StatementRefused,
    json_rows,
    open_database,
    render,
)
from support.sql import SHOP, a_database, a_sqlite_file

LIMITS = Limits(seconds=5)
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"

QUIRKS = """
CREATE TABLE "order" ("from" INTEGER PRIMARY KEY, "Unit Price" NUMERIC(10, 2), "it's" TEXT, 日本 TEXT);
CREATE TABLE pairs (a INTEGER, b INTEGER, note, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE child (
    id INTEGER PRIMARY KEY, parent INTEGER REFERENCES child, x INT, y INT,
    total INT GENERATED ALWAYS AS (x + y) VIRTUAL,
    "order" INTEGER REFERENCES "order",
    FOREIGN KEY (x, y) REFERENCES pairs (a, b)
);
CREATE VIEW named AS SELECT "from" AS number, "it's" AS text FROM "order";
CREATE VIRTUAL TABLE docs USING fts5(title, body);
CREATE VIEW broken AS SELECT gone FROM "order";
INSERT INTO "order" VALUES (1, 9.5, 'it''s "quoted"', 'はい'), (2, NULL, '', NULL), (3, 1e400, 'line' || char(10) || 'feed', 'x');
INSERT INTO pairs VALUES (1, 2, x'00ff'), (3, 4, 'text'), (5, 6, 7);
INSERT INTO docs VALUES ('hello', 'a world of words');
"""


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Database]:
    database = a_database(tmp_path)
    yield database
    await database.close()


@pytest.fixture
async def quirks(tmp_path: Path) -> AsyncIterator[Database]:
    database = a_database(tmp_path, QUIRKS)
    yield database
    await database.close()


async def unavailable(database: Database) -> DatabaseUnavailable:
    with pytest.raises(DatabaseUnavailable) as caught:
        await database.execute("SELECT 1", LIMITS)
    await database.close()
    return caught.value


def at(path: Path, **options: object) -> Database:
    return open_database(
        name="shop",
        dialect="sqlite",
        dsn=f"sqlite:///{path.name}",
        base_dir=path.parent,
        **options,  # type: ignore[arg-type]
    )


class TestSchema:
    """What is read of a file."""

    async def test_tables_keys_and_values_are_read(self, shop: Database) -> None:
        assert render(await shop.schema()) == (
            'CREATE TABLE "customers" (\n'
            '  "id" INTEGER PRIMARY KEY,  -- e.g. 1, 2, 3\n'
            "  \"name\" TEXT NOT NULL,  -- e.g. 'Ann', 'Bo', 'Cy'\n"
            "  \"city\" TEXT  -- e.g. 'Berlin', 'Paris'\n"
            ");\n\n"
            'CREATE TABLE "orders" (\n'
            '  "id" INTEGER PRIMARY KEY,  -- e.g. 1, 2, 3\n'
            '  "customer_id" INTEGER,  -- e.g. 1, 2, 3\n'
            '  "total_cents" INTEGER,  -- e.g. 1, 250, 999\n'
            "  \"note\" TEXT,  -- e.g. '', 'gift', 'say \"hi\"'\n"
            '  FOREIGN KEY ("customer_id") REFERENCES "customers" ("id")\n'
            ");"
        )

    async def test_names_of_every_kind_are_read_and_can_be_asked_for(self, quirks: Database) -> None:
        schema = await quirks.schema()
        order = schema.table("order")
        assert order is not None
        assert [column.name for column in order.columns] == ["from", "Unit Price", "it's", "日本"]
        result = await quirks.execute(
            'SELECT "from", "Unit Price", "it\'s", 日本 FROM "order" WHERE "from" = 1', LIMITS
        )
        assert result.columns == ("from", "Unit Price", "it's", "日本")
        assert result.rows == ((1, 9.5, 'it\'s "quoted"', "はい"),)

    async def test_keys_of_every_kind_are_read(self, quirks: Database) -> None:
        schema = await quirks.schema()
        child = schema.table("child")
        pairs = schema.table("pairs")
        assert child is not None
        assert pairs is not None
        assert child.foreign_keys == (
            ForeignKey(("parent",), "child", ("id",)),
            ForeignKey(("order",), "order", ("from",)),
            ForeignKey(("x", "y"), "pairs", ("a", "b")),
        )
        assert [column.name for column in pairs.columns if column.primary_key] == ["a", "b"]
        assert child.column("total") is not None

    async def test_views_are_read_and_broken_ones_left_out(self, quirks: Database) -> None:
        schema = await quirks.schema()
        named = schema.table("named")
        assert named is not None
        assert named.view
        assert schema.table("broken") is None
        assert any(note.startswith("broken: left out") for note in schema.notes)

    async def test_full_text_search_works_under_the_seal(self, quirks: Database) -> None:
        result = await quirks.execute("SELECT title FROM docs WHERE docs MATCH 'world' ORDER BY rank", LIMITS)
        assert result.rows == (("hello",),)
        assert (await quirks.schema()).table("docs_content") is None

    async def test_tables_are_included_and_excluded_by_pattern(self, tmp_path: Path) -> None:
        database = a_database(tmp_path, include=["*"], exclude=["CUST*"])
        assert [table.name for table in (await database.schema()).tables] == ["orders"]
        with pytest.raises(StatementRefused, match="no such table: customers"):
            await database.execute("SELECT * FROM customers", LIMITS)
        orders = (await database.schema()).table("orders")
        assert orders is not None
        assert orders.foreign_keys == ()
        await database.close()

    async def test_sample_values_can_be_left_out(self, tmp_path: Path) -> None:
        database = a_database(tmp_path, sample_values=0)
        assert "e.g." not in render(await database.schema())
        await database.close()

    async def test_a_schema_of_900_tables_is_read(self, tmp_path: Path) -> None:
        script = "".join(f"CREATE TABLE t{i} (id INTEGER PRIMARY KEY, v TEXT);" for i in range(900))
        database = a_database(tmp_path, script)
        assert len((await database.schema()).tables) == 900
        assert (await database.execute("SELECT count(*) FROM t899", LIMITS)).rows == ((0,),)
        await database.close()

    async def test_texts_are_indexed(self, shop: Database) -> None:
        index = await shop.values()
        assert [match.value for match in index.mentioned("What did o'neil from berlin order?")] == [
            "O'Neil",
            "Berlin",
        ]
        assert index.covers("customers", "city")

    async def test_a_column_of_too_many_texts_is_not_indexed(self, tmp_path: Path) -> None:
        script = (
            "CREATE TABLE t (a TEXT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
            " INSERT INTO t SELECT 'v' || i FROM n;"
        )
        database = a_database(tmp_path, script)
        assert not (await database.values()).covers("t", "a")
        await database.close()

    async def test_a_table_may_have_the_name_of_a_table_function(self, tmp_path: Path) -> None:
        database = a_database(tmp_path, "CREATE TABLE json_each (a); INSERT INTO json_each VALUES (7);")
        assert (await database.execute("SELECT a FROM json_each", LIMITS)).rows == ((7,),)
        with pytest.raises(StatementFailed, match="not a function"):
            await database.execute("SELECT value FROM json_each('[1]')", LIMITS)
        await database.close()

    async def test_a_very_long_text_costs_its_column_the_samples_and_nothing_else(
        self, tmp_path: Path
    ) -> None:
        database = a_database(tmp_path, "CREATE TABLE articles (title TEXT, body TEXT)")
        connection = sqlite3.connect(tmp_path / "shop.sqlite")
        connection.execute("INSERT INTO articles VALUES ('one', ?)", ("x" * 300_000,))
        connection.commit()
        connection.close()
        table = (await database.schema()).table("articles")
        assert table is not None
        assert [column.samples for column in table.columns] == [("'one'",), ()]
        assert (await database.execute("SELECT title FROM articles", LIMITS)).rows == (("one",),)
        assert not (await database.values()).covers("articles", "body")
        await database.close()

    async def test_a_view_that_never_ends_costs_its_samples_and_nothing_else(self, tmp_path: Path) -> None:
        view = f"CREATE VIEW slow AS {ENDLESS.replace('sum(i)', 'i')} WHERE i < 0;"
        database = a_database(tmp_path, view + SHOP)
        schema = await database.schema()
        assert [table.name for table in schema.tables] == ["slow", "customers", "orders"]
        assert schema.tables[0].columns[0].samples == ()
        assert schema.tables[1].columns[2].samples
        assert (await database.values()).contains("customers", "city", "Berlin")
        await database.close()

    async def test_only_the_first_rows_of_a_large_table_are_looked_at(self, tmp_path: Path) -> None:
        rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 100000)"
        script = f"CREATE TABLE big (status TEXT); INSERT INTO big {rows} SELECT 'open' FROM n; INSERT INTO big VALUES ('late');"
        database = a_database(tmp_path, script)
        index = await database.values()
        assert index.contains("big", "status", "open")
        assert not index.covers("big", "status")  # so that nobody says that a text is missing
        await database.close()


class TestFreshness:
    """Rows and tables that change are seen at once; what is shown of values may be older."""

    async def test_a_new_row_is_seen_by_the_next_statement(self, shop: Database, tmp_path: Path) -> None:
        before = await shop.execute("SELECT count(*) FROM customers", LIMITS)
        writer = sqlite3.connect(tmp_path / "shop.sqlite")
        writer.execute("INSERT INTO customers VALUES (9, 'Di', 'Rome')")
        writer.commit()
        writer.close()
        after = await shop.execute("SELECT count(*) FROM customers", LIMITS)
        assert (before.rows, after.rows) == (((4,),), ((5,),))

    async def test_a_new_table_is_seen(self, shop: Database, tmp_path: Path) -> None:
        assert (await shop.schema()).table("fresh") is None
        writer = sqlite3.connect(tmp_path / "shop.sqlite")
        writer.executescript("CREATE TABLE fresh (a TEXT); INSERT INTO fresh VALUES ('Oslo');")
        writer.close()
        assert (await shop.schema()).table("fresh") is not None
        assert (await shop.values()).mentioned("oslo")

    async def test_new_rows_alone_keep_what_is_remembered(self, shop: Database, tmp_path: Path) -> None:
        schema, values = await shop.schema(), await shop.values()
        writer = sqlite3.connect(tmp_path / "shop.sqlite")
        writer.execute("INSERT INTO customers VALUES (9, 'Di', 'Rome')")
        writer.commit()
        writer.close()
        assert await shop.schema() is schema
        assert await shop.values() is values

    async def test_another_file_in_its_place_is_seen(self, shop: Database, tmp_path: Path) -> None:
        await shop.schema()
        other = a_sqlite_file(
            tmp_path, "CREATE TABLE other (a); INSERT INTO other VALUES (7)", "other.sqlite"
        )
        other.replace(tmp_path / "shop.sqlite")
        assert (await shop.execute("SELECT a FROM other", LIMITS)).rows == ((7,),)

    async def test_an_unchanged_schema_is_kept(self, shop: Database) -> None:
        assert await shop.schema() is await shop.schema()
        assert await shop.values() is await shop.values()

    async def test_an_old_schema_is_read_again_when_asked_to(self, tmp_path: Path) -> None:
        database = a_database(tmp_path, refresh_seconds=0.0)
        assert await database.schema() is not await database.schema()
        await database.close()

    async def test_a_file_in_wal_mode_is_read_while_it_is_written(self, tmp_path: Path) -> None:
        path = a_sqlite_file(tmp_path, "PRAGMA journal_mode = WAL;" + SHOP)
        writer = sqlite3.connect(path)
        writer.execute("INSERT INTO customers VALUES (9, 'Di', 'Rome')")
        writer.commit()
        database = at(path)
        assert (await database.execute("SELECT count(*) FROM customers", LIMITS)).rows == ((5,),)
        writer.execute("DELETE FROM customers")
        writer.commit()
        assert (await database.execute("SELECT count(*) FROM customers", LIMITS)).rows == ((0,),)
        writer.close()
        await database.close()

    async def test_a_file_that_another_process_locks_is_busy(self, tmp_path: Path) -> None:
        path = a_sqlite_file(tmp_path)
        database = at(path)
        await database.schema()
        writer = sqlite3.connect(path)
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseUnavailable) as caught:
            await database.execute("SELECT 1 FROM customers", LIMITS)
        assert caught.value.reason == "Busy"
        writer.rollback()
        writer.close()
        assert (await database.execute("SELECT 1 FROM customers LIMIT 1", LIMITS)).rows == ((1,),)
        await database.close()


class TestUnavailable:
    """What cannot be opened says what to change."""

    async def test_a_missing_file(self, tmp_path: Path) -> None:
        error = await unavailable(at(tmp_path / "nothing.sqlite"))
        assert error.reason == "NotFound"
        assert "there is no file" in error.message
        assert "nothing.sqlite" in error.message
        assert not (tmp_path / "nothing.sqlite").exists()

    async def test_a_file_that_is_no_database(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("Dear diary, " * 500)
        error = await unavailable(at(path))
        assert error.reason == "NotADatabase"
        assert "is not a SQLite database" in error.message

    async def test_an_empty_file(self, tmp_path: Path) -> None:
        path = tmp_path / "empty.sqlite"
        path.touch()
        error = await unavailable(at(path))
        assert (error.reason, "is empty" in error.message) == ("NotADatabase", True)
        assert path.stat().st_size == 0

    async def test_a_file_that_a_writer_left_unfinished(self, tmp_path: Path) -> None:
        writer = sqlite3.connect(a_sqlite_file(tmp_path))
        writer.execute("PRAGMA cache_size = 1")
        writer.executemany("INSERT INTO customers (name) VALUES (?)", [("x" * 3000,)] * 50)
        left = tmp_path / "left"
        left.mkdir()
        for name in ("shop.sqlite", "shop.sqlite-journal"):
            shutil.copy(tmp_path / name, left)
        writer.close()
        error = await unavailable(at(left / "shop.sqlite"))
        assert error.reason == "NeedsWriting"
        assert "open it once as its owner" in error.message

    async def test_a_folder(self, tmp_path: Path) -> None:
        assert (await unavailable(at(tmp_path))).reason == "NotADatabase"

    async def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert (await unavailable(at(tmp_path / "pipe"))).reason == "NotADatabase"

    async def test_a_damaged_file(self, tmp_path: Path) -> None:
        path = a_sqlite_file(tmp_path, "CREATE TABLE t (a); INSERT INTO t VALUES (hex(zeroblob(90000)));")
        data = bytearray(path.read_bytes())
        data[4096 : 4096 + 2000] = b"\xff" * 2000
        path.write_bytes(bytes(data))
        database = at(path)
        with pytest.raises((DatabaseUnavailable, StatementError)):
            await database.execute("SELECT a FROM t", LIMITS)
        await database.close()

    async def test_a_database_without_tables(self, tmp_path: Path) -> None:
        error = await unavailable(a_database(tmp_path, exclude=["*"]))
        assert (error.reason, "include" in error.message) == ("NoTables", True)

    async def test_a_database_whose_only_view_is_broken(self, tmp_path: Path) -> None:
        error = await unavailable(a_database(tmp_path, "CREATE VIEW broken AS SELECT a FROM gone"))
        assert (error.reason, "no such table: main.gone" in error.message) == ("NoTables", True)

    async def test_a_file_that_goes_away(self, shop: Database, tmp_path: Path) -> None:
        await shop.execute("SELECT 1", LIMITS)
        (tmp_path / "shop.sqlite").unlink()
        assert (await unavailable(shop)).reason == "NotFound"

    async def test_a_closed_database(self, shop: Database) -> None:
        await shop.execute("SELECT 1", LIMITS)
        await shop.close()
        assert (await unavailable(shop)).reason == "Closed"

    @pytest.mark.parametrize(
        "dsn",
        [
            "",
            "shop.sqlite",
            "sqlite://",
            "sqlite:///:memory:",
            "sqlite://host/x",
            "postgresql://me:hunter2@db/x",
            "::",
            "http://[::1",
            "sqlite:///a\x00b",
        ],
    )
    def test_a_dsn_that_is_none_is_not_quoted(self, dsn: str, tmp_path: Path) -> None:
        with pytest.raises(DatabaseUnavailable) as caught:
            open_database(name="shop", dialect="sqlite", dsn=dsn, base_dir=tmp_path)
        assert caught.value.reason == "BadDsn"
        assert "hunter2" not in caught.value.message
        assert "sqlite:///" in caught.value.message

    def test_an_unknown_dialect_lists_those_that_exist(self, tmp_path: Path) -> None:
        with pytest.raises(DatabaseUnavailable, match="use one of: sqlite"):
            open_database(name="shop", dialect="oracle", dsn="oracle://x", base_dir=tmp_path)

    async def test_odd_names_of_files_are_no_trouble(self, tmp_path: Path) -> None:
        folder = tmp_path / "a b?&#%41ü"
        folder.mkdir()
        path = a_sqlite_file(folder)
        database = open_database(name="x", dialect="sqlite", dsn="sqlite:///shop.sqlite", base_dir=folder)
        assert (await database.execute("SELECT count(*) FROM customers", LIMITS)).rows == ((4,),)
        await database.close()
        assert [entry.name for entry in folder.iterdir()] == [path.name]

    async def test_an_absolute_path_needs_no_folder(self, tmp_path: Path) -> None:
        path = a_sqlite_file(tmp_path)
        database = open_database(
            name="x", dialect="sqlite", dsn=f"sqlite:///{path}", base_dir=Path("/nowhere")
        )
        assert (await database.execute("SELECT 1", LIMITS)).rows == ((1,),)
        await database.close()


class TestResults:
    """Rows as the database gave them, under caps."""

    async def test_cells_of_every_kind(self, quirks: Database) -> None:
        result = await quirks.execute(
            'SELECT "Unit Price", note FROM "order", pairs WHERE "from" = a OR "from" = 2', LIMITS
        )
        assert {type(cell) for row in result.rows for cell in row} == {float, bytes, type(None), str, int}
        rows = await quirks.execute('SELECT "Unit Price" FROM "order" WHERE "from" = 3', LIMITS)
        assert rows.rows == ((math.inf,),)
        assert json_rows(rows) == [["inf"]]
        assert json_rows(await quirks.execute("SELECT note FROM pairs WHERE a = 1", LIMITS)) == [["0x00ff"]]

    async def test_a_percent_sign_or_a_colon_is_no_parameter(self, shop: Database) -> None:
        result = await shop.execute("SELECT name, ':x %s ?' FROM customers WHERE name LIKE '%nn%'", LIMITS)
        assert result.rows == (("Ann", ":x %s ?"),)

    async def test_text_that_is_not_utf8_is_read(self, tmp_path: Path) -> None:
        database = a_database(
            tmp_path, "CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'61ff62' AS TEXT));"
        )
        assert (await database.execute("SELECT a FROM t", LIMITS)).rows == (("a\ufffdb",),)
        await database.close()

    async def test_rows_are_capped_and_the_result_says_so(self, shop: Database) -> None:
        for rows, truncated in ((3, True), (4, False), (5, False)):
            result = await shop.execute("SELECT id FROM customers", Limits(rows=rows))
            assert (len(result.rows), result.truncated) == (min(rows, 4), truncated)

    async def test_cells_are_capped(self, shop: Database) -> None:
        result = await shop.execute("SELECT printf('%5000s', 'ü'), 'short'", Limits(cell_bytes=100))
        text = result.rows[0][0]
        assert isinstance(text, str)
        assert len(text.encode()) <= 100
        assert text.endswith("…")
        assert result.truncated

    async def test_bytes_are_capped(self, shop: Database) -> None:
        result = await shop.execute(
            "SELECT printf('%900s', a.id) FROM customers a, customers b", Limits(bytes=5_000)
        )
        assert len(result.rows) == 5
        assert result.truncated

    async def test_too_many_columns_are_an_error(self, shop: Database) -> None:
        with pytest.raises(StatementFailed, match="3 columns; 2 is the limit"):
            await shop.execute("SELECT id, name, city FROM customers", Limits(columns=2))

    async def test_duplicate_names_of_columns_are_kept(self, shop: Database) -> None:
        result = await shop.execute("SELECT id, id AS id, 1 AS id FROM customers LIMIT 1", LIMITS)
        assert (result.columns, result.rows) == (("id", "id", "id"), ((1, 1, 1),))

    async def test_an_empty_result_has_its_columns(self, shop: Database) -> None:
        result = await shop.execute("SELECT id FROM customers WHERE 0", LIMITS)
        assert (result.columns, result.rows, result.truncated) == (("id",), (), False)

    @pytest.mark.parametrize(
        ("sql", "reason", "message"),
        [
            ("SELECT custmer FROM customers", "NoSuchColumn", "no such column: custmer"),
            ("SELECT id FROM customers JOIN orders", "AmbiguousColumn", "ambiguous column name: id"),
            ("SELECT unheard_of(1)", "NoSuchFunction", "no such function: UNHEARD_OF"),
            ("SELECT * FROM custmers", "UnknownTable", "no such table: custmers"),
            ('SELECT "Berlin" FROM customers', "NoSuchColumn", 'no such column: "Berlin"'),
            ("SELECT 'a' REGEXP 'b'", "NoSuchFunction", "no such function: REGEXP"),
            ("SELECT abs(-9223372036854775808)", "Failed", "integer overflow"),
        ],
    )
    async def test_errors_keep_the_words_of_the_database(
        self, sql: str, reason: str, message: str, shop: Database
    ) -> None:
        with pytest.raises(StatementError, match=message.replace('"', ".")) as caught:
            await shop.execute(sql, LIMITS)
        assert caught.value.reason == reason

    async def test_functions_under_a_cost_limit_do_what_sqlite_does(self, tmp_path: Path) -> None:
        script = (
            "CREATE TABLE v (x); INSERT INTO v VALUES (NULL), (''), ('abcabc'), ('  ünï  '), ('a'), (3), (3.50), (-7),"
            " (x'6162'), ('%d'), ('%s|%5.2f'), ('100%');"
        )
        database = a_database(tmp_path, script)
        plain = sqlite3.connect(tmp_path / "shop.sqlite")
        for call in (
            "instr(a.x, b.x)", "replace(a.x, b.x, 'Q')", "replace(a.x, 'b', b.x)", "trim(a.x, b.x)", "ltrim(a.x, b.x)",
            "rtrim(a.x, b.x)", "printf(a.x, b.x)", "printf('%s-%d', a.x, b.x)", "trim(a.x)", "floor(a.x)", "printf()",
        ):  # fmt: skip
            sql = f"SELECT typeof({call}), {call} FROM v AS a, v AS b ORDER BY a.rowid, b.rowid"
            ours = await database.execute(sql, LIMITS)
            assert list(ours.rows) == plain.execute(sql).fetchall(), call
        plain.close()
        await database.close()


class TestStopping:
    """Statements end when their time is up, and when nobody wants them any more."""

    async def test_a_statement_ends_at_its_limit(self, shop: Database) -> None:
        with pytest.raises(StatementFailed, match=r"ran longer than 0\.2 s") as caught:
            await shop.execute(ENDLESS, Limits(seconds=0.2))
        assert caught.value.reason == "TimedOut"

    async def test_the_loop_is_free_while_a_statement_runs(self, shop: Database) -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        task = asyncio.create_task(tick())
        with pytest.raises(StatementFailed):
            await shop.execute(ENDLESS, Limits(seconds=0.5))
        task.cancel()
        assert ticks > 5

    async def test_cancelling_reaches_the_engine(self, shop: Database) -> None:
        await shop.schema()
        task = asyncio.create_task(shop.execute(ENDLESS, Limits(seconds=3600)))
        await asyncio.sleep(0.2)
        async with asyncio.timeout(10):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while any(thread.name == "hexflow-sql-watchdog" for thread in threading.enumerate()):
                await asyncio.sleep(0.01)  # the watchdog goes when the statement has ended

    async def test_cancelling_at_any_moment_leaves_the_connection_to_itself(
        self, shop: Database, caplog: pytest.LogCaptureFixture
    ) -> None:
        await shop.schema()
        for place in range(60):
            task = asyncio.create_task(shop.execute(ENDLESS if place % 2 else "SELECT 1", LIMITS))
            await asyncio.sleep(place / 3000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert caplog.text == ""  # SQLAlchemy logs a cursor that it cannot close

    async def test_closing_stops_what_runs(self, shop: Database) -> None:
        await shop.schema()
        task = asyncio.create_task(shop.execute(ENDLESS, Limits(seconds=3600)))
        await asyncio.sleep(0.2)
        async with asyncio.timeout(10):
            await shop.close()
            with pytest.raises(DatabaseUnavailable, match="was closed"):
                await task

    async def test_many_statements_at_once_take_turns(self, shop: Database) -> None:
        results = await asyncio.gather(*(shop.execute(f"SELECT {i}", LIMITS) for i in range(40)))
        assert [result.rows for result in results] == [((i,),) for i in range(40)]

    async def test_a_statement_that_waits_for_its_turn_can_be_cancelled(self, shop: Database) -> None:
        await shop.schema()
        running = [asyncio.create_task(shop.execute(ENDLESS, Limits(seconds=3600))) for _ in range(9)]
        await asyncio.sleep(0.2)
        running[-1].cancel()
        async with asyncio.timeout(10):
            with pytest.raises(asyncio.CancelledError):
                await running[-1]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            assert (await shop.execute("SELECT 1", LIMITS)).rows == ((1,),)

    async def test_a_long_statement_is_parsed_off_the_loop(self, shop: Database) -> None:
        columns = ", ".join(f"id + {i} AS c{i}" for i in range(99))
        assert len((await shop.execute(f"SELECT {columns} FROM customers", LIMITS)).columns) == 99
