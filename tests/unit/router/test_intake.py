import pytest

from hexflow_router.errors import ApiError
from hexflow_router.intake import pick, read_question, unknown


@pytest.mark.parametrize(
    ("body", "status", "code", "says"),
    [
        (b'{"question": "\xff"}', 400, "invalid_utf8", "byte 14"),
        (b'{"question": "q"', 400, "invalid_json", "not valid JSON"),
        (b"", 400, "invalid_json", "not valid JSON"),
        (b'{"question":' + b"[" * 100_000, 400, "invalid_json", "nested too deeply"),
        (b'{"question": "q", "deadlineSeconds": NaN}', 400, "invalid_json", "not valid JSON"),
        (b'["question"]', 400, "invalid_json", "JSON object such as"),
        (b"{}", 400, "invalid_request", "`question`: is needed"),
        (b'{"question": " "}', 400, "invalid_request", "write a question"),
        (b'{"question": "q", "dedlineSeconds": 5}', 400, "invalid_request", "did you mean `deadlineSeconds`"),
        (b'{"question": "q", "x": 5}', 400, "invalid_request", "there are question, database"),
        (b'{"question": "q", "deadlineSeconds": -5}', 400, "invalid_request", "greater than 0, not -5"),
        (b'{"question": "q", "deadlineSeconds": 0}', 400, "invalid_request", "greater than 0, not 0"),
        (b'{"question": "q", "deadlineSeconds": 1e308}', 400, "invalid_request", "86400, not 1e+308"),
        (b'{"question": "q", "deadlineSeconds": 1e400}', 400, "invalid_json", "not valid JSON"),
        (
            b'{"question": "q", "deadlineSeconds": 1' + b"0" * 400 + b"}",
            400,
            "invalid_request",
            "valid number",
        ),
        (b'{"question": "q", "deadlineSeconds": ' + b"9" * 5000 + b"}", 400, "invalid_json", "out of range"),
        (b'{"question": "q", "\\ud800": 1}', 400, "invalid_json", "not valid JSON"),
        (
            b'{"question": "q", "database": "' + b"d" * 254 + b'"}',
            400,
            "invalid_request",
            "must have at most 253",
        ),
        (b'{"question": "q", "deadlineSeconds": "60"}', 400, "invalid_request", "valid number"),
        (b'{"question": "' + b"q" * 101 + b'"}', 413, "question_too_long", "101 characters"),
    ],
)
def test_a_wrong_question_gets_one_readable_message(body: bytes, status: int, code: str, says: str) -> None:
    with pytest.raises(ApiError) as error:
        read_question(body, max_chars=100)
    assert (error.value.status, error.value.code) == (status, code)
    assert says in error.value.message


def test_of_many_strange_fields_a_few_are_named() -> None:
    body = b'{"question": "q", ' + b", ".join(b'"x%d": 1' % number for number in range(100_000)) + b"}"
    with pytest.raises(ApiError) as error:
        read_question(body, max_chars=100)
    assert error.value.message.count("there is no such field") == 5
    assert error.value.param == "x0"


def test_a_question_in_any_script_is_read() -> None:
    body = '{"question": "Wie viele Kunden? 你好 🐘", "deadlineSeconds": 5}'.encode()
    assert read_question(body, max_chars=100).question.endswith("🐘")


def test_the_only_database_need_not_be_named() -> None:
    assert pick(None, ["shop"], what="database", param="database") == "shop"
    assert pick("shop", ["shop", "crm"], what="database", param="database") == "shop"
    with pytest.raises(ApiError, match="several: shop, crm"):
        pick(None, ["shop", "crm"], what="database", param="database")


def test_an_unknown_name_is_answered_with_what_there_is() -> None:
    with pytest.raises(ApiError, match="Did you mean 'shop'") as error:
        pick("shp", ["shop", "crm"], what="database", param="database")
    assert (error.value.status, error.value.code) == (404, "database_not_found")
    assert "There is: shop, crm." in unknown("zzz", ["shop", "crm"], what="workflow", param="name").message
    assert len(unknown("z" * 5000, [], what="workflow", param="name").message) < 200
