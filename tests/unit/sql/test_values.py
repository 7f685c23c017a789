"""Values of the database in a question, found without a model."""

from hexflow_sql.values import ValueIndex, ValueMatch

BERLIN = ValueMatch("customers", "city", "Berlin")
NEW_YORK = ValueMatch("customers", "city", "New York")
YORK = ValueMatch("customers", "city", "York")
ONEIL = ValueMatch("customers", "name", "O'Neil")
RETURN = ValueMatch("movements", "kind", "return")
THE = ValueMatch("words", "word", "the")
INDEX = ValueIndex.build([BERLIN, NEW_YORK, YORK, ONEIL, RETURN, THE], covered=[("customers", "city")])


def test_a_value_is_found_whatever_its_case() -> None:
    assert INDEX.mentioned("How many customers live in BERLIN?") == (BERLIN,)


def test_the_longest_value_wins() -> None:
    assert INDEX.mentioned("orders from new york") == (NEW_YORK,)


def test_both_are_found_where_both_stand() -> None:
    assert set(INDEX.mentioned("new york or york")) == {NEW_YORK, YORK}


def test_punctuation_does_not_hide_a_value() -> None:
    assert INDEX.mentioned("all orders by o'neil, please") == (ONEIL,)


def test_a_plural_is_found() -> None:
    assert INDEX.mentioned("how many returns were there") == (RETURN,)


def test_common_words_are_no_values() -> None:
    assert INDEX.mentioned("the weather") == ()


def test_a_value_in_several_columns_is_found_in_each() -> None:
    other = ValueMatch("stores", "city", "Berlin")
    assert ValueIndex.build([BERLIN, other]).mentioned("Berlin") == (BERLIN, other)


def test_the_number_of_matches_is_bounded() -> None:
    index = ValueIndex.build(ValueMatch("t", f"c{i}", "Berlin") for i in range(100))
    assert len(index.mentioned("Berlin", most=5)) == 5


def test_long_texts_are_not_indexed() -> None:
    assert ValueIndex.build([ValueMatch("t", "c", "Berlin " * 40)]).mentioned("Berlin") == ()


def test_the_very_value_is_told_from_its_like() -> None:
    assert INDEX.contains("Customers", "CITY", "Berlin")
    assert not INDEX.contains("customers", "city", "berlin")
    assert not INDEX.contains("customers", "name", "Berlin")


def test_it_is_known_which_columns_are_all_there() -> None:
    assert INDEX.covers("customers", "city")
    assert not INDEX.covers("customers", "name")


def test_nothing_is_found_in_nothing() -> None:
    assert ValueIndex().mentioned("Berlin") == ()
    assert INDEX.mentioned("") == ()
