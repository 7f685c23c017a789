"""What the scheduler has learned survives its router, and a spoilt file does not keep one from starting."""

import asyncio
import contextlib
import json
import logging
from pathlib import Path

import pytest

from hexflow_router.learned import LearnedFile
from hexflow_scheduler import Estimates


def having_learned(decode: float) -> Estimates:
    """Return estimates that know one instance's speed."""
    estimates = Estimates()
    for _ in range(5):
        estimates.timed("a100-0", prefill=1.0, decode=decode)
    estimates.answered("shop", 12.0)
    return estimates


async def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    learned = having_learned(1.5)
    await LearnedFile(tmp_path / "deep" / "learned.json").save(learned)
    restored = LearnedFile(tmp_path / "deep" / "learned.json").restore()
    assert restored.to_data() == learned.to_data()
    assert restored.scales("a100-0")[1] > 1.1


async def test_without_a_file_a_router_learns_anew(tmp_path: Path) -> None:
    assert LearnedFile(tmp_path / "learned.json").restore().to_data() == Estimates().to_data()
    nowhere = LearnedFile(None)
    await nowhere.save(having_learned(2.0))
    await asyncio.wait_for(nowhere.keep(Estimates), timeout=1)  # has nothing to do
    assert nowhere.restore().to_data() == Estimates().to_data()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 999}', "null", "[" * 100_000])
async def test_a_spoilt_file_is_put_aside_and_the_one_before_it_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    file = LearnedFile(tmp_path / "learned.json")
    await file.save(having_learned(1.5))
    await file.save(having_learned(2.0))
    (tmp_path / "learned.json").write_text(text)
    with caplog.at_level(logging.WARNING):
        restored = file.restore()
    assert restored.to_data() == having_learned(1.5).to_data()
    assert "learned.json is not used" in caplog.text
    assert (tmp_path / "learned.json.refused").read_text() == text
    # the last good one is still there after the next save, beside the new one
    await file.save(having_learned(3.0))
    assert file.restore().to_data() == having_learned(3.0).to_data()
    before = json.loads((tmp_path / "learned.json.before").read_text())
    assert Estimates.from_data(before).to_data() == having_learned(1.5).to_data()


async def test_two_spoilt_files_leave_nothing_learned(tmp_path: Path) -> None:
    for name in ("learned.json", "learned.json.before"):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00")
    assert LearnedFile(tmp_path / "learned.json").restore().to_data() == Estimates().to_data()


async def test_a_disk_that_takes_nothing_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    file = LearnedFile(tmp_path / "file" / "learned.json")
    for _ in range(3):
        await file.save(Estimates())
    assert caplog.text.count("cannot be written") == 1


async def test_it_is_saved_again_and_again(tmp_path: Path) -> None:
    file = LearnedFile(tmp_path / "learned.json")
    estimates = Estimates()
    keeping = asyncio.ensure_future(file.keep(lambda: estimates, every=0.005))
    async with asyncio.timeout(10):
        while not (tmp_path / "learned.json.before").exists():
            await asyncio.sleep(0.005)
        estimates.answered("shop", 3.0)
        found = ""
        while "shop" not in found:
            await asyncio.sleep(0.005)
            with contextlib.suppress(
                FileNotFoundError
            ):  # for a moment the old one is moved and the new one not yet
                found = (tmp_path / "learned.json").read_text()
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
