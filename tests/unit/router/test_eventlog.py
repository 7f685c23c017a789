import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hexflow_router.eventlog import EventLog, EventLogError, Retention
from hexflow_router.loghead import what
from hexflow_router.metrics import Metrics
from hexflow_scheduler import decode


def test_lines_are_read_back_in_order(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "logs" / "events.jsonl")
    for number in range(2000):
        log.write(f'{{"n":{number}}}')
    assert list(log.read()) == [f'{{"n":{number}}}' for number in range(2000)]
    log.close()
    assert len((tmp_path / "logs" / "events.jsonl").read_text().splitlines()) == 2000


def test_a_log_that_is_there_is_added_to(tmp_path: Path) -> None:
    for number in range(3):
        log = EventLog(tmp_path / "events.jsonl")
        log.write(str(number))
        log.close()
    assert (tmp_path / "events.jsonl").read_text() == "0\n1\n2\n"


def test_half_a_line_of_a_process_that_was_killed_is_not_joined(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"n":0}\n{"n":1,"ca')
    log = EventLog(file)
    log.write('{"n":0}')
    assert list(log.read()) == ['{"n":0}', '{"n":1,"ca', '{"n":0}']
    log.close()


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "events.jsonl"):
        with pytest.raises(EventLogError, match="name another file"):
            EventLog(path)


def test_a_full_file_is_turned_over_and_the_oldest_deleted(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", retention=Retention(file_bytes=10, files=3))
    for number in range(6):
        log.write(f"line {number} is long")
        log.flush()
    assert list(log.read()) == [f"line {number} is long" for number in (3, 4, 5)]
    log.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "events.jsonl",
        "events.jsonl.1",
        "events.jsonl.2",
    ]


def test_a_full_file_that_is_too_old_is_deleted(tmp_path: Path) -> None:
    now = [0.0]
    retention = Retention(file_bytes=1, files=5, age_seconds=60)
    log = EventLog(tmp_path / "events.jsonl", retention=retention, clock=lambda: now[0])
    for number in range(4):
        log.write(str(number))
        log.flush()
    now[0] = 4e9
    log.write("new")
    assert list(log.read()) == ["3", "new"]
    log.close()


def test_without_a_file_the_last_lines_are_kept_in_memory() -> None:
    log = EventLog(None)
    log.write("a")
    assert list(log.read()) == ["a"]
    log.close()


def test_what_cannot_be_written_is_counted(tmp_path: Path) -> None:
    metrics = Metrics()
    log = EventLog(tmp_path / "events.jsonl", metrics=metrics)
    (tmp_path / "events.jsonl").unlink()
    (tmp_path / "events.jsonl").mkdir()
    log.write("lost")
    log.flush()
    log.close()
    assert metrics.registry.get_sample_value("hexflow_event_log_dropped_total") == 1


# What a log begins with


def a_start(**more: Any) -> str:
    return json.dumps(
        {"v": 2, "n": 0, "t": 0.0, "input": "start", "with": more, "decisions": []}, separators=(",", ":")
    )


def a_record(at: float, name: str = "wake", **given: Any) -> str:
    record = {"v": 2, "n": 1, "t": at, "input": name, "with": given, "decisions": [["end"]]}
    return json.dumps(record, separators=(",", ":"))


def an_instance(at: float, name: str, state: str = "Ready") -> str:
    return a_record(at, "instance", instance={"instanceId": name, "state": state})


def told(lines: Iterable[str]) -> list[tuple[str, float, bool]]:
    found = [(*what(line), "continued" in json.loads(line)) for line in lines]
    return [(name, at, more) for name, at, more in found]


def test_a_log_whose_oldest_file_is_gone_begins_with_what_still_holds(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", retention=Retention(file_bytes=150, files=2))
    parameters = a_record(3.0, "parameters", workflow="shop", parameters={"alpha": 0.5})
    for line in (
        a_start(dispatch="LeastHarm"),
        an_instance(1.0, "one"),
        an_instance(1.0, "two"),
        an_instance(2.0, "one", "Unready"),
        an_instance(2.5, "two", "Gone"),
        parameters,
        *(a_record(float(number)) for number in range(4, 10)),
    ):
        log.write(line)
        log.flush()
    found = list(log.read())
    log.close()
    assert told(found) == [
        ("start", 7.0, True),
        ("instance", 2.0, True),
        ("parameters", 3.0, True),
        ("wake", 8.0, False),
        ("wake", 9.0, False),
    ]
    head = [json.loads(line) for line in found[:3]]
    assert head[0]["with"] == {"dispatch": "LeastHarm"}
    assert head[1]["with"]["instance"] == {"instanceId": "one", "state": "Unready"}
    assert [each["decisions"] for each in head] == [[], [], []]
    assert [decode(line).input for line in found[:1]] == ["start"]


def test_a_head_is_read_at_the_beginning_alone(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", retention=Retention(file_bytes=10, files=9))
    lines = [a_start(), *(a_record(float(number)) for number in range(1, 6))]
    for line in lines:
        log.write(line)
        log.flush()
    assert (tmp_path / "events.jsonl").read_text().count("continued") == 1
    assert list(log.read()) == lines
    log.close()


def test_memory_that_has_forgotten_its_start_begins_with_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hexflow_router.eventlog.KEPT_IN_MEMORY", 3)
    log = EventLog(None)
    assert list(log.read()) == []
    for line in (a_start(), an_instance(1.0, "one"), *(a_record(float(number)) for number in range(2, 6))):
        log.write(line)
    assert told(log.read()) == [
        ("start", 2.0, True),
        ("instance", 1.0, True),
        ("wake", 3.0, False),
        ("wake", 4.0, False),
        ("wake", 5.0, False),
    ]
    log.close()


@pytest.mark.parametrize(
    ("since", "first"), [(-1.0, 0), (0.5, 0), (1.0, 0), (3.9, 0), (4.0, 3), (7.0, 6), (99.0, 6)]
)
@pytest.mark.parametrize("in_memory", [True, False])
def test_since_an_instant_means_from_the_last_start_before_it(
    tmp_path: Path, since: float, first: int, in_memory: bool
) -> None:
    lines = [line for begun in (1.0, 4.0, 7.0) for line in (a_start(), a_record(begun), a_record(begun + 1))]
    retention = Retention(file_bytes=200, files=9)
    log = EventLog(None if in_memory else tmp_path / "events.jsonl", retention=retention)
    for line in lines:
        log.write(line)
        log.flush()
    assert list(log.read(since)) == lines[first:]
    assert list(log.read()) == lines
    log.close()
