"""From the bytes of a request to a question: every way in which they can be wrong, each with its remedy.

It knows the models of ``answer.py`` and nothing of what follows.
"""

import difflib
import itertools
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from pydantic import ValidationError

from hexflow_router.answer import Question
from hexflow_router.body import read_object
from hexflow_router.errors import ApiError

_OBJECT = msgspec.json.Decoder(dict[str, Any])

_ALIASES = tuple(str(field.alias) for field in Question.model_fields.values())
_FIELDS = frozenset({*_ALIASES, *Question.model_fields})


def read_question(body: bytes, *, max_chars: int) -> Question:
    """Read a question. Raises ApiError (400, or 413 for one that is too long)."""
    data = read_object(body, _OBJECT, such_as='{"question": "How many customers live in Berlin?"}')
    # Looked at before the model does: a fault for each of a hundred thousand fields would hold up everybody.
    if strange := list(itertools.islice((name for name in data if name not in _FIELDS), 5)):
        raise _refused([(_place((name,)), _no_such_field(name)) for name in strange])
    try:
        question = Question.model_validate(data)
    except ValidationError as problem:
        faults = [(_place(fault["loc"]), _fault(dict(fault))) for fault in problem.errors()]
        raise _refused(faults) from None
    for name, text in (("question", question.question), ("evidence", question.evidence or "")):
        if len(text) > max_chars:
            raise ApiError(
                f"`{name}` has {len(text)} characters, and {max_chars} are taken: shorten it.",
                status=413,
                code="question_too_long",
                param=name,
            )
    return question


def pick(name: str | None, known: Iterable[str], *, what: str, param: str) -> str:
    """Return the name of something known; None picks the only one there is. Raises ApiError (404, 400)."""
    names = list(known)
    if name is None:
        if len(names) == 1:
            return names[0]
        raise ApiError(
            f"`{param}` is needed, for there are several: {', '.join(names)}.",
            status=400,
            code="invalid_request",
            param=param,
        )
    if name in names:
        return name
    raise unknown(name, names, what=what, param=param)


def unknown(name: str, known: Iterable[str], *, what: str, param: str) -> ApiError:
    """Return the error for a name that nothing has."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    shown = name if len(name) <= 80 else name[:80] + "…"
    if near:
        remedy = f"Did you mean {near[0]!r}?"
    elif names:
        remedy = f"There is: {', '.join(names[:20])}."
    else:
        remedy = "There is none."
    return ApiError(
        f"There is no {what} {shown!r}. {remedy}", status=404, code=f"{what}_not_found", param=param
    )


def _refused(faults: Sequence[tuple[str, str]]) -> ApiError:
    return ApiError(
        " ".join(f"`{place}`: {what}." for place, what in faults),
        status=400,
        code="invalid_request",
        param=faults[0][0],
    )


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location)[:80] or "body"


def _no_such_field(name: str) -> str:
    near = difflib.get_close_matches(name[:80], _ALIASES, n=1)
    return "there is no such field; " + (
        f"did you mean `{near[0]}`" if near else f"there are {', '.join(_ALIASES)}"
    )


def _fault(fault: dict[str, Any]) -> str:
    if fault["type"] == "missing":
        return "is needed"
    value = fault["input"]
    message = re.sub(r"^(Input|String) should", "must", str(fault["msg"]).removeprefix("Value error, "))
    # A whole number may be larger than any float.
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        message += f", not {value:g}"
    return message
