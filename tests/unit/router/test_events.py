import asyncio

from hexflow_router.events import KEEP_ALIVE, EventStream, encoded


async def names(stream: EventStream, after: int = 0) -> list[str]:
    return [event.name async for event in stream.follow(after)]


async def test_a_late_reader_gets_what_it_missed() -> None:
    stream = EventStream()
    stream.publish("one", {})
    stream.publish("two", {})
    stream.close()
    assert await names(stream) == ["one", "two"]


async def test_a_reader_that_comes_back_starts_after_the_number_it_saw() -> None:
    stream = EventStream()
    for name in ("one", "two", "three"):
        stream.publish(name, {})
    stream.close()
    assert await names(stream, 2) == ["three"]
    assert await names(stream, 99) == []
    assert await names(stream, -5) == ["one", "two", "three"]


async def test_readers_that_wait_are_woken_by_each_event() -> None:
    stream = EventStream()
    readers = [asyncio.create_task(names(stream)) for _ in range(3)]
    await asyncio.sleep(0)
    stream.publish("one", {})
    await asyncio.sleep(0)
    stream.publish("two", {})
    stream.close()
    stream.publish("after the end", {})
    assert await asyncio.gather(*readers) == [["one", "two"]] * 3


async def test_events_are_written_as_server_sent_events() -> None:
    stream = EventStream()
    stream.publish("call.placed", {"text": "two\nlines"})
    stream.close()
    assert [chunk async for chunk in encoded(stream)] == [
        b'id: 1\nevent: call.placed\ndata: {"text":"two\\nlines"}\n\n'
    ]


async def test_a_silence_is_filled_with_comments() -> None:
    stream = EventStream()
    chunks = encoded(stream, keep_alive_seconds=0.001)
    assert await anext(chunks) == KEEP_ALIVE
    stream.publish("one", {})
    assert (await anext(chunks)).startswith(b"id: 1\n")
    await chunks.aclose()
