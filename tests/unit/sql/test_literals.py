"""Texts in WHERE that the database does not hold."""

from hexflow_sql.literals import missing_texts
from hexflow_sql.values import ValueIndex, ValueMatch
from support.sql import a_schema, a_table

SCHEMA = a_schema(a_table("customers", "id", "city", "name"), a_table("stores", "id", "city", "kind"))
INDEX = ValueIndex.build(
    [ValueMatch("customers", "city", "Berlin"), ValueMatch("stores", "kind", "outlet")],
    covered=[("customers", "city"), ("stores", "kind")],
)


def missing(sql: str) -> list[str]:
    return [match.value for match in missing_texts(sql, schema=SCHEMA, index=INDEX)]


def test_a_text_that_its_column_lacks_is_named() -> None:
    assert missing("SELECT 1 FROM customers WHERE city = 'berlin'") == ["berlin"]
    assert missing("SELECT 1 FROM customers WHERE 'berlin' = customers.city") == ["berlin"]


def test_a_text_that_its_column_holds_is_not() -> None:
    assert missing("SELECT 1 FROM customers WHERE city = 'Berlin'") == []


def test_every_text_of_a_list_counts() -> None:
    assert missing("SELECT 1 FROM customers AS c WHERE c.city IN ('Berlin', 'Rome', 'Oslo')") == [
        "Rome",
        "Oslo",
    ]


def test_aliases_are_followed() -> None:
    assert missing("SELECT 1 FROM stores s JOIN customers c ON c.id = s.id WHERE c.city = 'Rome'") == ["Rome"]


def test_an_ambiguous_column_is_left_alone() -> None:
    assert missing("SELECT 1 FROM stores s JOIN customers c ON c.id = s.id WHERE city = 'Rome'") == []


def test_a_column_that_is_not_all_indexed_is_left_alone() -> None:
    assert missing("SELECT 1 FROM customers WHERE name = 'Nobody'") == []


def test_patterns_and_numbers_are_left_alone() -> None:
    assert missing("SELECT 1 FROM customers WHERE city LIKE 'R%' AND id = 7") == []


def test_what_is_no_statement_misses_nothing() -> None:
    assert missing("DROP TABLE customers") == []
