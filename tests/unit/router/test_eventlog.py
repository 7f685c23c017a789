from pathlib import Path

import pytest

from hexflow_router.eventlog import EventLog, EventLogError, Retention
from hexflow_router.metrics import Metrics


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
