import itertools

from hypothesis import given
from hypothesis import strategies as st

from hexflow_cli.sse import EventParser, ServerEvent

STREAM = (
    b': hello\n\nid: 1\nevent: stage.started\ndata: {"name":\n'
    b'data: "a"}\n\nevent: nothing\n\ndata:plain\r\n\r\nevent: last\ndata: \xc3\xa4\n\n'
)
EVENTS = [
    ServerEvent(name="stage.started", data='{"name":\n"a"}'),
    ServerEvent(name="message", data="plain"),
    ServerEvent(name="last", data="ä"),
]


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_events_come_out_the_same_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    parser = EventParser()
    events: list[ServerEvent] = []
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in itertools.pairwise(edges):
        events += parser.feed(STREAM[start:end])
    assert events == EVENTS


def test_an_event_that_has_not_ended_does_not_come_out() -> None:
    assert list(EventParser().feed(b"data: half")) == []
