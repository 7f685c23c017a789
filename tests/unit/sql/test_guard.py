"""The parser layer alone."""

import pytest

from hexflow_sql import Schema, StatementRefused, check
from support.attacks import COULD_SPY, COULD_WRITE, NOT_PLAIN
from support.sql import a_column, a_schema, a_table

SCHEMA = a_schema(
    a_table("t", "a", "b", "when"),
    a_table("u", "a", "c"),
    a_table("order items", "id", "Unit Price", "größe"),
    a_table("v", "a"),
)


def passes(sql: str, dialect: str = "sqlite", schema: Schema | None = SCHEMA) -> str:
    return check(sql, dialect=dialect, schema=schema).text


def refusal(sql: str, dialect: str = "sqlite", schema: Schema | None = SCHEMA) -> StatementRefused:
    with pytest.raises(StatementRefused) as caught:
        check(sql, dialect=dialect, schema=schema)
    return caught.value


@pytest.mark.parametrize("name", COULD_WRITE)
def test_the_parser_refuses_what_could_write(name: str) -> None:
    assert refusal(COULD_WRITE[name]).reason


@pytest.mark.parametrize("name", COULD_SPY)
def test_the_parser_refuses_what_reads_more_than_was_given(name: str) -> None:
    assert refusal(COULD_SPY[name]).reason in {"UnknownTable", "Function", "Forbidden"}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_the_parser_refuses_what_is_no_plain_query(name: str) -> None:
    error = refusal(NOT_PLAIN[name])
    assert error.reason
    assert len(error.message) < 400


def test_there_are_more_than_sixty_attacks() -> None:
    assert len(COULD_WRITE) + len(COULD_SPY) > 100


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t",
        "select a from T where A = 1;",
        "(SELECT a FROM t)",
        "VALUES (1, 'x')",
        "SELECT a FROM t UNION SELECT a FROM u EXCEPT SELECT 3 ORDER BY 1 LIMIT 5 OFFSET 2",
        "WITH c AS (SELECT a FROM t), d AS (SELECT a FROM c) SELECT * FROM d JOIN c USING (a)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n",
        'SELECT "Unit Price", "größe" FROM "order items" AS "o i"',
        "SELECT [Unit Price], `größe` FROM [order items]",
        'SELECT "when" FROM t',
        "SELECT t.* FROM t LEFT JOIN u ON t.a = u.a WHERE u.a IS NULL",
        "SELECT count(*) FILTER (WHERE a > 1), sum(DISTINCT a), group_concat(b, ', ') FROM t GROUP BY b HAVING count(*) > 1",
        "SELECT rank() OVER (PARTITION BY b ORDER BY a DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT avg(a) OVER w FROM t WINDOW w AS (ORDER BY a)",
        "SELECT CASE a WHEN 1 THEN 'x' ELSE NULL END, CAST(a AS REAL) / 2, a % 2, -a, +a, ~a, a << 1, a & 3 FROM t",
        "SELECT strftime('%Y-%m', b), date('now', '-1 month'), julianday(b) - julianday('now'), datetime(b, 'unixepoch') FROM t",
        "SELECT b LIKE '%50\\%%' ESCAPE '\\', b GLOB 'a*', b NOT LIKE 'x', a BETWEEN 1 AND 2, a NOT IN (1, 2) FROM t",
        "SELECT value ->> '$.x', json_extract(b, '$.y[0]') FROM t, json_each(t.b)",
        "SELECT a FROM t WHERE (a, b) IN (SELECT a, c FROM u) AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
        "SELECT coalesce(b, ''), ifnull(a, 0), nullif(a, 0), iif(a, 1, 2), printf('%.2f', a / 100.0), instr(b, 'x'), substr(b, 2) FROM t",
        "SELECT 'it''s', 'a; DROP TABLE t', '-- no comment', x'00ff', 1e3, .5 FROM t",
        "SELECT a AS \"the answer\" FROM t ORDER BY \"the answer\"",
        "SELECT rowid, * FROM t WHERE b COLLATE NOCASE = 'x' ORDER BY random() LIMIT 1",
        "SELECT main.t.a FROM main.t",
        "SELECT a, b FROM t NATURAL JOIN u CROSS JOIN v",
        "SELECT b IS NOT a, b IS a, b NOTNULL, b ISNULL, a == 1, a <> 2, a != 3 FROM t",
        "SELECT a -- only this; DROP TABLE t\nFROM t /* and ; this */ WHERE a > 1",
    ],
)  # fmt: skip
def test_an_ordinary_query_passes(sql: str) -> None:
    assert passes(sql)


def test_what_is_sent_is_written_anew_without_comments() -> None:
    assert passes("SELECT /*! evil */ a -- x\nFROM t") == "SELECT a FROM t"


def test_mysql_never_sees_a_comment_that_it_would_run() -> None:
    text = passes("SELECT a /*!50000 , LOAD_FILE('/etc/passwd') */ FROM t", dialect="mysql")
    assert "LOAD_FILE" not in text.upper()


def test_a_comma_between_tables_does_not_bind_the_planner() -> None:
    assert "CROSS" not in passes("SELECT t.a FROM t, u WHERE t.a = u.a")


def test_a_text_in_double_quotes_is_no_column() -> None:
    error = refusal('SELECT a FROM t WHERE b = "Berlin"')
    assert error.reason == "NoSuchColumn"
    assert "single quotes" in error.message


def test_an_unknown_table_is_named_as_the_database_would() -> None:
    assert refusal("SELECT * FROM custmers").message == "no such table: custmers"


def test_a_with_name_hides_no_table_outside_its_query() -> None:
    assert refusal("SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x) AS q, x").reason == "UnknownTable"


def test_a_plain_with_name_is_not_itself_outside_sqlite() -> None:
    sql = "WITH secret AS (SELECT * FROM secret) SELECT * FROM secret"
    assert refusal(sql, dialect="postgres").reason == "UnknownTable"


def test_a_later_with_name_is_not_visible_to_an_earlier_one_outside_sqlite() -> None:
    sql = "WITH x AS (SELECT * FROM secret), secret AS (SELECT 1) SELECT * FROM x"
    assert refusal(sql, dialect="postgres").reason == "UnknownTable"


def test_names_that_double_are_counted_before_the_database_expands_them() -> None:
    names = ", ".join(f"a{i} AS (SELECT l.x FROM a{i - 1} l, a{i - 1} r)" for i in range(1, 20))
    assert refusal(f"WITH a0 AS (SELECT 1 AS x), {names} SELECT count(*) FROM a19").reason == "TooWide"


def test_a_statement_knows_whether_it_orders_its_rows() -> None:
    assert check("SELECT a FROM t ORDER BY a", dialect="sqlite", schema=SCHEMA).ordered
    assert not check(
        "SELECT a FROM (SELECT a FROM t ORDER BY a) AS q", dialect="sqlite", schema=SCHEMA
    ).ordered


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", "SELECT pg_read_file('/etc/passwd')"),
        ("postgres", "SELECT pg_catalog.pg_read_file('/etc/passwd')"),
        ("postgres", "SELECT * FROM pg_ls_dir('/')"),
        ("postgres", "SELECT lo_import('/etc/passwd')"),
        ("postgres", "SELECT * FROM dblink('host=x', 'SELECT 1') AS q(a int)"),
        ("postgres", "SELECT pg_sleep(1000)"),
        ("postgres", "SELECT PG_SLEEP_FOR('5 minutes')"),
        ("postgres", "SELECT pg_terminate_backend(1)"),
        ("postgres", "SELECT set_config('x.y', 'z', false)"),
        ("postgres", "SELECT query_to_xml('DELETE FROM t', true, true, '')"),
        ("postgres", "COPY t TO PROGRAM 'sh'"),
        ("postgres", "COMMIT; CREATE TABLE evil (x int)"),
        ("postgres", "DO $$ BEGIN DELETE FROM t; END $$"),
        ("postgres", "SELECT * FROM t FOR SHARE"),
        ("postgres", "SELECT a INTO evil FROM t"),
        ("postgres", "SELECT nextval('s')"),
        ("postgres", "WITH x AS (UPDATE t SET a = 1 RETURNING *) SELECT * FROM x"),
        ("postgres", "SELECT * FROM information_schema.tables"),
        ("postgres", "SELECT * FROM pg_shadow"),
        ("mysql", "SELECT LOAD_FILE('/etc/passwd')"),
        ("mysql", "SELECT a FROM t INTO OUTFILE '/tmp/x'"),
        ("mysql", "SELECT SLEEP(100)"),
        ("mysql", "SELECT BENCHMARK(1000000000, MD5('x'))"),
        ("mysql", "SELECT @@datadir"),
        ("mysql", "SELECT GET_LOCK('x', 100)"),
        ("mysql", "SET GLOBAL general_log = 1"),
        ("duckdb", "SELECT * FROM read_csv('/etc/passwd')"),
        ("duckdb", "SELECT * FROM read_text('/etc/passwd')"),
        ("duckdb", "SELECT * FROM '/etc/passwd'"),
        ("duckdb", "SELECT * FROM read_parquet('s3://x')"),
        ("duckdb", "SELECT getenv('HOME')"),
        ("duckdb", "INSTALL httpfs"),
        ("duckdb", "COPY t TO 'x.csv'"),
        ("duckdb", "EXPORT DATABASE 'x'"),
        ("duckdb", "SELECT * FROM query('DELETE FROM t')"),
        ("duckdb", "PRAGMA database_list"),
    ],
)
def test_the_lists_of_other_dialects_are_ready(dialect: str, sql: str) -> None:
    assert refusal(sql, dialect=dialect).reason


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", "SELECT date_trunc('month', b::timestamp), a::int, b ILIKE '%x%' FROM t"),
        ("postgres", "SELECT EXTRACT(YEAR FROM CURRENT_DATE), NOW() - INTERVAL '1 day', string_agg(b, ',') FROM t"),
        ("mysql", "SELECT DATE_FORMAT(b, '%Y-%m'), IFNULL(a, 0) FROM t LIMIT 5"),
        ("duckdb", "SELECT strftime(b, '%Y'), a // 2 FROM t"),
    ],
)  # fmt: skip
def test_ordinary_queries_of_other_dialects_pass(dialect: str, sql: str) -> None:
    assert passes(sql, dialect=dialect)


def test_ilike_reaches_mysql_and_sqlite_as_something_they_know() -> None:
    for dialect in ("mysql", "sqlite"):
        assert passes("SELECT b FROM t WHERE b ILIKE '%x%'", dialect=dialect).endswith(
            "LOWER(b) LIKE LOWER('%x%')"
        )
    assert "ILIKE" in passes("SELECT b FROM t WHERE b ILIKE '%x%'", dialect="postgres")


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        (
            "sqlite",
            "SELECT STRFTIME('%Y-%m', b), DATE('now', 'start of month', '-1 day'), JULIANDAY(b) FROM t",
        ),
        ("postgres", "SELECT DATE_TRUNC('MONTH', b), AGE(b), TO_CHAR(b, 'YYYY-MM') FROM t"),
        ("mysql", "SELECT DATE_FORMAT(b, '%Y-%m'), DATEDIFF(b, a) FROM t"),
        ("duckdb", "SELECT DATE_TRUNC('MONTH', b), STRFTIME(b, '%Y-%m') FROM t"),
    ],
)
def test_date_functions_of_a_dialect_stay_as_they_are(dialect: str, sql: str) -> None:
    assert passes(sql, dialect=dialect) == sql


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "duckdb"])
def test_quoted_names_in_mixed_case_stay_quoted(dialect: str) -> None:
    schema = a_schema(a_table("OrderItems", "UnitPrice", "select"))
    sql = 'SELECT "UnitPrice", "o"."select" FROM "OrderItems" AS "o"'
    assert passes(sql, dialect=dialect, schema=schema) == sql


def test_without_a_schema_every_table_is_known() -> None:
    assert passes("SELECT x FROM anything", schema=None)


def test_a_wide_schema_is_checked_by_its_names() -> None:
    schema = a_schema(*(a_table(f"table_{i}", "id") for i in range(900)))
    assert passes("SELECT id FROM TABLE_899", schema=schema)
    assert refusal("SELECT id FROM table_900", schema=schema).reason == "UnknownTable"


def test_a_schema_may_hold_reserved_and_unicode_names() -> None:
    schema = a_schema(a_table("select", "from", "Straße"), a_table("日本", "列"))
    assert passes('SELECT "from", "Straße" FROM "select" JOIN "日本" ON "列" = "from"', schema=schema)
    assert a_column("x").name == "x"
