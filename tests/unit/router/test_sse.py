import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexflow_router.errors import ApiError
from hexflow_router.sse import StreamWatch, error_event, read_usage
from hexflow_scheduler import Usage

DONE = b"data: [DONE]\n\n"


def event(text: str | None = None, *, index: int = 0, finish: str | None = None) -> bytes:
    choice = {"index": index, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}}\n\n'
WHOLE = b": hello\n\n" + event("a") + event("b\u20ac") + event(finish="stop") + USAGE + DONE


@given(st.lists(st.integers(1, 40), max_size=60))
def test_a_sound_stream_passes_byte_for_byte_however_it_is_cut(sizes: list[int]) -> None:
    watch, passed, rest = StreamWatch(), b"", WHOLE
    for size in sizes:
        passed += watch.feed(rest[:size])
        rest = rest[size:]
    passed += watch.feed(rest)
    watch.end()
    assert passed == WHOLE
    assert watch.done
    assert watch.failure is None
    assert watch.usage is not None
    assert (watch.usage.prompt_tokens, watch.usage.output_tokens, watch.usage.cached_tokens) == (9, 4, 2)


@pytest.mark.parametrize(
    "said",
    [
        None,
        "many",
        [],
        {},
        {"prompt_tokens": None},
        {"prompt_tokens": -5, "completion_tokens": 3},
        {"prompt_tokens": 5, "completion_tokens": -3},
        {"prompt_tokens": 5.5, "completion_tokens": 3},
        {"prompt_tokens": True},
        {"prompt_tokens": 10**17, "completion_tokens": 3},
    ],
)
def test_a_usage_that_makes_no_sense_counts_as_none(said: object) -> None:
    assert read_usage(said) is None


def test_a_usage_holds_what_sense_it_makes() -> None:
    details = {"cached_tokens": 99}
    said = {"prompt_tokens": 9, "completion_tokens": None, "prompt_tokens_details": details}
    assert read_usage(said) == Usage(prompt_tokens=9, output_tokens=0, cached_tokens=9)
    details["cached_tokens"] = -1
    assert read_usage(said) == Usage(prompt_tokens=9, output_tokens=0)


def test_lines_may_end_as_on_windows() -> None:
    watch = StreamWatch()
    stream = WHOLE.replace(b"\n", b"\r\n")
    assert watch.feed(stream) == stream
    assert watch.done


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (event("a") + DONE, "AbortedByEngine"),
        (event("a") + event(finish="abort") + DONE, "AbortedByEngine"),
        (event("a", index=0) + event("b", index=1) + event(finish="stop", index=0) + DONE, "AbortedByEngine"),
        (DONE, "AbortedByEngine"),
        (event("a") + event(finish="stop"), "BrokenAnswer"),
        (event("a") + b'data: {"choices"', "BrokenAnswer"),
        (event("a") + b"data: <html>\n\n", "Rubbish"),
        (b"", "BrokenAnswer"),
    ],
)
def test_a_stream_that_is_not_whole_fails_and_done_is_held_back(stream: bytes, reason: str) -> None:
    watch = StreamWatch()
    passed = watch.feed(stream)
    watch.end()
    assert watch.failure is not None
    assert watch.failure[0] == reason
    assert b"[DONE]" not in passed
    assert not watch.done
    assert stream.startswith(passed)


def test_an_error_that_the_engine_reports_passes_as_it_came() -> None:
    stream = event("a") + b'data: {"error":{"message":"out of memory","code":500}}\n\n' + DONE
    watch = StreamWatch()
    assert watch.feed(stream) == stream
    watch.end()
    assert watch.failure is None
    assert (watch.engine_error, watch.engine_status) == ("out of memory", 500)


def test_output_is_estimated_by_events_or_text_whichever_is_more() -> None:
    watch = StreamWatch()
    watch.feed(event("a" * 400))
    assert watch.output_estimate == 100
    for _ in range(200):
        watch.feed(event("a"))
    assert watch.output_estimate == 201


def test_an_event_without_an_end_is_not_collected_for_ever() -> None:
    watch = StreamWatch()
    for _ in range(20):
        watch.feed(b"x" * (1 << 20))
    assert watch.failure is not None
    assert watch.failure[0] == "Rubbish"


def test_the_last_event_of_a_broken_stream_is_an_error_object() -> None:
    data = error_event(ApiError("It broke.", status=502, code="engine_failed"))
    assert data.startswith(b"data: ")
    assert data.endswith(b"\n\n")
    assert json.loads(data[6:])["error"]["message"] == "It broke."
