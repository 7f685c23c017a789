"""From a model's text to a statement; the cases are what people report of real models."""

import pytest

from hexflow_sql.extract import MAX_PARSED, extract, read_json, without_reasoning
from hexflow_sql.parser import parse_query


def sql_of(text: str, *, dialect: str = "sqlite", finish_reason: str = "stop") -> str | None:
    return extract(text, dialect=dialect, finish_reason=finish_reason).sql


def test_the_statement_of_a_fence_is_found() -> None:
    assert sql_of("Here it is:\n```sql\nSELECT a\nFROM t\n```\nI hope this helps.") == "SELECT a\nFROM t"


def test_the_last_of_two_fences_wins() -> None:
    assert sql_of("First try:\n```sql\nSELECT 1\n```\nBetter:\n```sql\nSELECT 2\n```") == "SELECT 2"


def test_a_fence_of_sample_output_after_the_statement_does_not_win() -> None:
    text = "```sql\nSELECT name FROM t\n```\nIt gives:\n```\nname | n\nAnn | 3\n```"
    assert sql_of(text) == "SELECT name FROM t"


@pytest.mark.parametrize("fence", ["```", "```sql", "```SQL", "```sqlite", "~~~sql", "````sql"])
def test_every_kind_of_fence_is_read(fence: str) -> None:
    closing = fence.rstrip("sqliteSQL")
    assert sql_of(f"{fence}\nSELECT a FROM t;\n{closing}\n") == "SELECT a FROM t"


def test_a_fence_on_one_line_is_read() -> None:
    assert sql_of("The answer is ```sql SELECT a FROM t```.") == "SELECT a FROM t"
    assert sql_of("The answer is ```SELECT a FROM t```.") == "SELECT a FROM t"


def test_an_indented_fence_is_read() -> None:
    assert sql_of("1. So:\n   ```sql\n   SELECT a\n   FROM t\n   ```\n") == "SELECT a\n   FROM t"


def test_windows_line_ends_are_read() -> None:
    assert sql_of("```sql\r\nSELECT a FROM t\r\n```\r\n") == "SELECT a FROM t"


def test_several_with_names_stay_together() -> None:
    sql = "WITH a AS (\n  SELECT 1 AS x\n), b AS (\n  SELECT x FROM a\n)\nSELECT * FROM b"
    assert sql_of(f"```sql\n{sql};\n```") == sql
    assert sql_of(f"I would write {sql};\nThat is all.") == sql


def test_newlines_are_kept_so_that_a_comment_does_not_eat_the_statement() -> None:
    sql = "SELECT a -- the id\nFROM t -- all of them\nWHERE a > 1"
    assert sql_of(f"```sql\n{sql}\n```") == sql
    assert sql_of(f'{{"sql": "{sql.encode("unicode_escape").decode()}"}}') == sql


def test_quotes_are_never_rewritten() -> None:
    sql = "SELECT \"Unit Price\", 'it''s', `x` FROM [order items] WHERE n = '“quoted”'"
    assert sql_of(f"```sql\n{sql}\n```") == sql


def test_a_backtick_inside_a_statement_ends_no_fence() -> None:
    assert sql_of("```sql\nSELECT `a` FROM `order items`\n```") == "SELECT `a` FROM `order items`"


def test_reasoning_is_dropped() -> None:
    assert (
        sql_of("<think>Maybe ```sql\nSELECT wrong FROM t\n```</think>\n```sql\nSELECT a FROM t\n```")
        == "SELECT a FROM t"
    )


def test_reasoning_without_its_opening_is_dropped() -> None:
    assert sql_of("Maybe SELECT wrong FROM t?\n</think>\nSELECT a FROM t") == "SELECT a FROM t"


def test_reasoning_that_never_closes_is_no_answer() -> None:
    found = extract("<think>Let me see: SELECT a FROM t would", dialect="sqlite")
    assert found.sql is None
    assert found.problem == "the text ends inside its reasoning"


def test_reasoning_after_reasoning_is_dropped() -> None:
    assert without_reasoning("<think>a</think> b <think>c</think> d") == " d"
    assert without_reasoning("<think>a</think> b <think>c") is None
    assert without_reasoning("plain") == "plain"


@pytest.mark.parametrize("tag", ["answer", "final_answer", "sql", "FINAL_ANSWER", "SQL"])
def test_answer_tags_win_over_what_stands_around_them(tag: str) -> None:
    text = f"```sql\nSELECT wrong FROM t\n```\n<{tag}>SELECT a FROM t;</{tag}>\n```\nnotes\n```"
    assert sql_of(text) == "SELECT a FROM t"


def test_a_fence_inside_an_answer_tag_is_read() -> None:
    assert sql_of("<answer>\n```sql\nSELECT a FROM t\n```\n</answer>") == "SELECT a FROM t"


@pytest.mark.parametrize(
    "text",
    [
        '{"sql": "SELECT a FROM t"}',
        '{"chain_of_thought": "a {b} c", "SQL": "SELECT a FROM t"}',
        'Sure.\n```json\n{"sql": "SELECT a FROM t;"}\n```',
        'So the answer is {"query": "SELECT a FROM t"} as asked.',
        '{"plan": {"steps": []}}\n{"sql": "SELECT a FROM t"}',
    ],
)
def test_json_is_read(text: str) -> None:
    assert sql_of(text) == "SELECT a FROM t"


def test_truncated_json_is_no_statement() -> None:
    found = extract('{"sql": "SELECT a FROM t WHERE b = \'x', dialect="sqlite", finish_reason="length")
    assert found.sql is None
    assert found.problem is not None
    assert "cut off" in found.problem


def test_a_truncated_fence_is_no_statement_even_where_it_parses() -> None:
    found = extract("```sql\nSELECT a FROM t WHERE total > 1", dialect="sqlite", finish_reason="length")
    assert found.sql is None


def test_a_closed_fence_counts_whatever_was_cut_off_after_it() -> None:
    assert sql_of("```sql\nSELECT a FROM t\n```\nThis works bec", finish_reason="length") == "SELECT a FROM t"


def test_an_open_fence_that_ended_by_itself_is_read() -> None:
    assert sql_of("```sql\nSELECT a FROM t\nWHERE a > 1") == "SELECT a FROM t\nWHERE a > 1"


def test_a_bare_statement_is_read() -> None:
    assert sql_of("SELECT a FROM t") == "SELECT a FROM t"
    assert sql_of("select a\n\nfrom t\n\nwhere a > 1") == "select a\n\nfrom t\n\nwhere a > 1"


def test_prose_around_a_bare_statement_is_dropped() -> None:
    text = "To answer, select the right table. Then:\n\nSELECT a, b\nFROM t\nWHERE b = 'x'\n\nThis lists all of them."
    assert sql_of(text) == "SELECT a, b\nFROM t\nWHERE b = 'x'"


def test_the_longest_of_several_bare_statements_wins() -> None:
    text = "Not SELECT a FROM t; but\nSELECT a, b FROM t JOIN u USING (a) ORDER BY b;"
    assert sql_of(text) == "SELECT a, b FROM t JOIN u USING (a) ORDER BY b"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I cannot help with deleting data.",
        "As a language model I do not have access to your database.",
        "Please select a different question.",
        "The question cannot be answered with the given schema.",
        "",
        "   \n ",
        "Select one.",
    ],
)
def test_a_refusal_is_not_run_as_sql(text: str) -> None:
    found = extract(text, dialect="sqlite")
    assert found.sql is None
    assert found.problem == "the text holds no SQL statement"


def test_no_sql_can_answer_is_an_outcome_of_its_own() -> None:
    found = extract("<unanswerable>There is no weather\nin this schema.</unanswerable>", dialect="sqlite")
    assert found.refusal == "There is no weather in this schema."
    assert extract('{"unanswerable": "no weather"}', dialect="sqlite").refusal == "no weather"


def test_a_statement_wins_over_a_refusal_that_is_only_talked_about() -> None:
    text = "I first thought <unanswerable>no</unanswerable>, but:\n```sql\nSELECT a FROM t\n```"
    assert sql_of(text) == "SELECT a FROM t"


def test_several_statements_in_one_fence_are_left_for_the_guard_to_refuse() -> None:
    assert sql_of("```sql\nSELECT 1; DROP TABLE t\n```") == "SELECT 1; DROP TABLE t"


def test_a_write_in_a_fence_is_left_for_the_guard_to_refuse() -> None:
    assert sql_of("```sql\nDELETE FROM t\n```") == "DELETE FROM t"


def test_a_statement_that_does_not_parse_is_left_for_the_database_to_explain() -> None:
    assert sql_of("```sql\nSELECT a FORM t WHERE\n```") == "SELECT a FORM t WHERE"


def test_names_in_other_scripts_survive() -> None:
    sql = 'SELECT "größe", "日本" FROM "Straßen" WHERE "имя" = \'Ünal\''
    assert sql_of(f"```sql\n{sql}\n```") == sql


def test_a_semicolon_inside_a_text_is_kept() -> None:
    assert sql_of("```sql\nSELECT a FROM t WHERE b = 'x;y';\n```") == "SELECT a FROM t WHERE b = 'x;y'"


@pytest.mark.parametrize(
    "text",
    [
        "select this or that, with care. " * 3000,
        "SELECT a,\n" + "b,\n" * 3000,
        "```sql\nSELECT a FROM t WHERE ((\n```\n" * 3000,
        "```x ```" * 3000,
    ],
)
def test_a_long_text_gives_the_parser_little_to_do(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def counted(sql: str, *, dialect: str) -> object:
        given.append(len(sql))
        return parse_query(sql, dialect=dialect)

    monkeypatch.setattr("hexflow_sql.extract.parse_query", counted)
    sql_of(text)
    assert sum(given) <= MAX_PARSED


def test_a_bare_statement_after_prose_that_begins_like_one_is_found() -> None:
    prose = "I select the rows with care. " * 40
    assert sql_of(f"{prose}\n\nSELECT a\nFROM t\n\nIt selects all.") == "SELECT a\nFROM t"


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<Think>", "</THINK>"),
        ("<thinking>", "</thinking>"),
        ("<reasoning>", "</reasoning>"),
        ("[THINK]", "[/THINK]"),
    ],
)
def test_reasoning_under_other_names_does_not_count(opening: str, closing: str) -> None:
    draft = "```sql\nSELECT 1 AS draft\n```"
    assert sql_of(f"{opening}{draft}{closing}SELECT a FROM t") == "SELECT a FROM t"
    assert sql_of(f"{opening}{draft}") is None


def test_a_heading_in_brackets_is_no_reasoning() -> None:
    assert sql_of("[Reasoning]\nAll of t.\n[SQL]\n```sql\nSELECT a FROM t\n```") == "SELECT a FROM t"


def test_json_inside_a_statement_is_no_container() -> None:
    sql = """SELECT json_extract('{"answer": "x"}', '$.answer') FROM t"""
    assert sql_of(f"```sql\n{sql}\n```") == sql


def test_of_several_keys_the_one_that_holds_a_statement_counts() -> None:
    assert (
        sql_of('{"statement": "I count all", "query": "SELECT count(*) FROM t"}') == "SELECT count(*) FROM t"
    )


def test_an_answer_tag_in_plain_words_does_not_hide_the_statement() -> None:
    assert sql_of("```sql\nSELECT a FROM t\n```\n<answer>There are five.</answer>") == "SELECT a FROM t"


def test_inline_code_is_read() -> None:
    assert sql_of("**SQL:** `SELECT a FROM t` is all it takes") == "SELECT a FROM t"


def test_json_amid_prose_is_found() -> None:
    assert read_json('Sure: {"tables": []} done') == {"tables": []}
    assert read_json('```json\n{"a": 1}\n```') == {"a": 1}
    assert read_json("[1, 2]") == [1, 2]
    assert read_json("nothing") is None
    assert read_json("<think>{}") is None
    assert read_json('{"a": ' * 5000) is None
