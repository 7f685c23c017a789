import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexflow_router.telemetry import read_metrics, read_models

PAGE = b"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
vllm:num_requests_running{engine="1",model_name="tiny"} 2.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:cache_config_info{block_size="16",num_gpu_blocks="100",engine="0"} 1.0
process_start_time_seconds 1.5e+09
"""


def test_the_counts_of_a_page_are_read_and_summed_over_engines() -> None:
    sample = read_metrics(PAGE, at=5.0)
    assert (sample.at, sample.running, sample.waiting, sample.load) == (5.0, 5, 1, 6)
    assert sample.kv_usage == 0.25
    assert sample.started_at == 1.5e9
    assert sample.kv_tokens == 1600


def test_older_names_are_understood() -> None:
    assert read_metrics(b"vllm:gpu_cache_usage_perc 0.5\n", at=0).kv_usage == 0.5


def test_a_page_without_our_numbers_says_nothing() -> None:
    sample = read_metrics(b"go_goroutines 7\n", at=0)
    assert (sample.running, sample.load, sample.started_at, sample.kv_tokens) == (None, None, None, None)


@pytest.mark.parametrize(
    "page", [b"vllm:num_requests_running many\n", b"\xff\xfe", b"vllm:num_requests_running{ 3\n"]
)
def test_what_is_no_page_of_metrics_is_refused(page: bytes) -> None:
    with pytest.raises(ValueError):
        read_metrics(page, at=0)


def test_models_are_read_with_their_context() -> None:
    listing = b'{"object":"list","data":[{"id":"a","max_model_len":4096,"x":1},{"id":"b"}]}'
    assert [(model.id, model.max_model_len) for model in read_models(listing)] == [("a", 4096), ("b", None)]


@pytest.mark.parametrize("number", ["+Inf", "-Inf", "NaN", "-1"])
def test_a_count_that_makes_no_sense_counts_as_none(number: str) -> None:
    page = f"vllm:num_requests_running {number}\nvllm:num_requests_waiting {number}\n"
    assert read_metrics(page.encode(), at=0).load is None
    assert read_models(b'{"data":[{"id":"a","max_model_len":-1}]}')[0].max_model_len is None


@given(st.text(alphabet='vllm:num_requests_running{}=",\\ 1e+-Inf\n#', max_size=60))
def test_whatever_follows_a_name_is_read_or_refused(rest: str) -> None:
    with contextlib.suppress(ValueError):
        read_metrics(f"vllm:num_requests_running{rest}\n".encode(), at=0)


@pytest.mark.parametrize(
    "body",
    [b'{"data":' + b"[" * 100_000, b"<html>", b"[]", b'{"data":[{"name":"a"}]}', b'{"data":7}', b"\xff"],
)
def test_what_is_no_list_of_models_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        read_models(body)
