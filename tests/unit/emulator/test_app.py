"""An emulated instance under virtual time: what it answers, when, and what its callers leave behind."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from support import virtual_time
from support.emulation import PROFILE, an_instance, running

SECONDS_PER_CALL = 0.015


def predicted(prompt_tokens: int, output_tokens: int) -> float:
    """Return the seconds that the profile gives a call alone."""
    return (
        SECONDS_PER_CALL
        + PROFILE.prefill_seconds(prompt_tokens)
        + PROFILE.decode_seconds(prompt_tokens, output_tokens)
    )


@pytest.mark.parametrize("scale", ["1", "4", "10"])
def test_an_answer_takes_the_time_of_its_profile_at_every_scale(scale: str) -> None:
    async def main() -> tuple[float, int]:
        instance = an_instance("--time-scale", scale, words="fixed:100")
        began = virtual_time.now()
        answer = await instance.chat("hello " * 200)
        return (virtual_time.now() - began) * float(scale), answer.json["usage"]["prompt_tokens"]

    seconds, prompt_tokens = virtual_time.run(main())
    assert seconds == pytest.approx(predicted(prompt_tokens, 100), rel=0.02)


def test_tokens_are_streamed_at_the_pace_of_the_profile() -> None:
    async def main() -> list[float]:
        answer = await an_instance(words="fixed:50").chat(stream=True)
        return [at for at, piece in answer.pieces if b"content" in piece]

    times = virtual_time.run(main())
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(times) == 50
    assert gaps == pytest.approx([PROFILE.t0 + PROFILE.t1] * 49, abs=0.001)


def test_at_high_scales_several_tokens_come_at_once() -> None:
    async def main() -> int:
        answer = await an_instance("--time-scale", "50", words="fixed:200").chat(stream=True)
        assert answer.events[-1]["choices"][0]["finish_reason"] == "stop"
        return len(answer.pieces)

    assert virtual_time.run(main()) < 60


def test_the_same_run_is_the_same_to_the_instant() -> None:
    async def main() -> list[tuple[float, int]]:
        instance = an_instance("--seed", "3", words="uniform:5:90")
        answers = await asyncio.gather(*(instance.chat(f"{n}", stream=True, seed=n) for n in range(6)))
        return [(at, len(piece)) for answer in answers for at, piece in answer.pieces]

    assert virtual_time.run(main()) == virtual_time.run(main())


def test_calls_run_together_and_the_rest_waits_for_a_slot() -> None:
    async def main() -> None:
        instance = an_instance(words="fixed:100")
        async with running(*(instance.chat(f"{n}") for n in range(6))):
            await asyncio.sleep(0.5)
            assert await instance.metric("vllm:num_requests_running") == 4
            assert await instance.metric("vllm:num_requests_waiting") == 2

    virtual_time.run(main())


@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_who_leaves_frees_the_engine_at_once(stream: bool) -> None:
    async def main() -> None:
        instance = an_instance(words="fixed:10000")
        body = {"messages": [{"role": "user", "content": "x"}], "stream": stream}
        leaves = asyncio.create_task(asyncio.sleep(3.0))
        answer = await instance.ask("/v1/chat/completions", body, leaves=leaves)
        assert not answer.complete
        assert virtual_time.now() == pytest.approx(virtual_time.EPOCH + 3.0, rel=1e-12)
        assert await instance.metric("vllm:num_requests_running") == 0
        assert await instance.metric("vllm:kv_cache_usage_perc") == 0

    virtual_time.run(main())


def test_nothing_runs_on_when_all_calls_are_answered() -> None:
    async def main() -> None:
        await an_instance().chat()
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    virtual_time.run(main())


def test_a_second_prompt_with_the_same_beginning_is_faster() -> None:
    async def main() -> list[tuple[float, int]]:
        instance = an_instance("--enable-prompt-tokens-details", words="fixed:1")
        seen = []
        for end in ("one", "two"):
            began = virtual_time.now()
            usage = (await instance.chat("schema " * 2000 + end)).json["usage"]
            seen.append((virtual_time.now() - began, usage["prompt_tokens_details"]["cached_tokens"]))
        return seen

    (cold, nothing), (warm, found) = virtual_time.run(main())
    assert nothing == 0
    assert found > 3800
    assert warm < cold - found * PROFILE.c1 * 0.95


def test_an_answer_over_its_limit_is_cut_and_says_so() -> None:
    async def main() -> None:
        choice = (await an_instance(words="fixed:50").chat(max_tokens=10)).json["choices"][0]
        assert choice["finish_reason"] == "length"
        assert len(choice["message"]["content"].encode()) == 36

    virtual_time.run(main())


def test_an_answer_within_its_limit_ends_by_itself() -> None:
    async def main() -> None:
        choice = (await an_instance(words="fixed:50").chat(max_tokens=60)).json["choices"][0]
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", None)

    virtual_time.run(main())


def test_the_book_is_read_by_seed_and_sample(tmp_path: Path) -> None:
    path = tmp_path / "book.yaml"
    path.write_text(
        "book: 1\nentries: [{question: How many?, answers: {chat: [{text: One.}, {text: Two.}, {text: Three.}]}}]"
    )

    async def main() -> None:
        instance = an_instance("--book", str(path))
        answer = await instance.chat("How many?", seed=1, n=2)
        assert [choice["message"]["content"] for choice in answer.json["choices"]] == ["Two.", "Three."]
        unknown = await instance.chat("How much?")
        assert unknown.status == 200
        assert (
            "knows only the questions of its answer book" in unknown.json["choices"][0]["message"]["content"]
        )

    virtual_time.run(main())


# Faults


def test_errors_strike_and_then_pass() -> None:
    async def main() -> None:
        instance = an_instance("--fault", "error:2:status=503")
        answers = [await instance.chat() for _ in range(3)]
        assert [answer.status for answer in answers] == [503, 503, 200]
        assert answers[0].json["error"]["code"] == 503

    virtual_time.run(main())


def test_a_stalled_call_never_ends_and_frees_the_engine_when_left() -> None:
    async def main() -> None:
        instance = an_instance("--fault", "stall:1:tokens=3", words="fixed:500")
        body = {"messages": [{"role": "user", "content": "x"}], "stream": True}
        answer = await instance.ask(
            "/v1/chat/completions", body, leaves=asyncio.create_task(asyncio.sleep(500))
        )
        assert not answer.complete
        assert answer.pieces[-1][0] < virtual_time.EPOCH + 1.0
        assert await instance.metric("vllm:num_requests_running") == 0

    virtual_time.run(main())


def test_an_aborted_call_ends_as_under_sigterm() -> None:
    async def main() -> None:
        instance = an_instance("--fault", "abort:2:tokens=3", words="fixed:500")
        events = (await instance.chat(stream=True)).events
        assert events[-1]["choices"][0]["finish_reason"] == "abort"
        choice = (await instance.chat()).json["choices"][0]
        assert choice["finish_reason"] == "abort"
        assert await instance.metric("vllm:num_requests_running") == 0

    virtual_time.run(main())


def test_a_cut_connection_raises_out_of_the_application() -> None:
    async def main() -> None:
        instance = an_instance("--fault", "cut:2:tokens=3", words="fixed:500")
        for stream in (True, False):
            with pytest.raises(ConnectionError):
                await instance.chat(stream=stream)
        assert await instance.metric("vllm:num_requests_running") == 0

    virtual_time.run(main())


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        ("html", "text/html"),
        ("json", "application/json"),
        ("empty", "application/json"),
        ("sse", "text/event-stream"),
    ],
)
def test_rubbish_is_a_200_that_cannot_be_read(kind: str, content_type: str) -> None:
    async def main() -> None:
        answer = await an_instance("--fault", f"rubbish:1:kind={kind}").chat()
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(content_type)
        with pytest.raises(ValueError, match=r"."):
            _ = answer.json

    virtual_time.run(main())


def test_a_slow_engine_takes_so_many_times_as_long() -> None:
    async def main() -> list[float]:
        instance = an_instance(words="fixed:100")
        seconds = []
        for faults in ([], ["slow:2"], ["slow:1"]):
            await instance.ask("/emulator/faults", {"faults": faults})
            began = virtual_time.now()
            await instance.chat(seed=1)
            seconds.append(virtual_time.now() - began)
        return seconds

    usual, slow, again = virtual_time.run(main())
    assert slow == pytest.approx(2 * usual, rel=0.01)
    assert again == pytest.approx(usual, rel=0.01)


def test_a_frozen_engine_goes_on_where_it_stood() -> None:
    async def main() -> list[float]:
        instance = an_instance(words="fixed:100")
        began = virtual_time.now()
        await instance.chat(seed=1)
        usual = virtual_time.now() - began
        async with running(instance.chat(seed=1)) as (call,):
            await asyncio.sleep(usual / 2)
            await instance.ask("/emulator/faults", {"faults": ["freeze:30"]})
            began = virtual_time.now()
            await call
            return [usual, virtual_time.now() - began]

    usual, rest = virtual_time.run(main())
    assert rest == pytest.approx(30 + usual / 2, abs=0.05)


def test_the_process_dies_with_the_call_that_was_named() -> None:
    class ProcessEnded(BaseException):
        pass

    def die() -> None:
        raise ProcessEnded

    async def main() -> None:
        instance = an_instance("--fault", "die-after:2", die=die)
        await instance.chat()
        with pytest.raises(ProcessEnded):
            await instance.chat()

    virtual_time.run(main())


def test_faults_are_set_shown_and_cleared_at_run_time() -> None:
    async def main() -> None:
        instance = an_instance()
        shown = await instance.ask("/emulator/faults", {"faults": ["error:1"]})
        assert shown.json == {"faults": [{"name": "error", "left": 1}]}
        assert (await instance.chat()).status == 500
        assert (await instance.ask("/emulator/faults")).json == {"faults": []}
        await instance.ask("/emulator/faults", {"faults": ["error:9"]})
        assert (await instance.ask("/emulator/faults", method="DELETE")).json == {"faults": []}
        assert (await instance.chat()).status == 200

    virtual_time.run(main())


@pytest.mark.parametrize(
    "body", [{"faults": ["explode:1"]}, {"faults": ["slow-start:1"]}, {"fault": []}, b"{"]
)
def test_wrong_faults_are_refused_and_change_nothing(body: object) -> None:
    async def main() -> None:
        instance = an_instance("--fault", "error:1")
        refused = await instance.ask("/emulator/faults", body)
        assert refused.status == 400
        assert refused.json["error"]
        assert (await instance.chat()).status == 500

    virtual_time.run(main())
