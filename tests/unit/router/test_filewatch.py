import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from hexflow_router.filewatch import looks


async def seen(stream: AsyncIterator[None], file: Path, text: str) -> None:
    """Follow the looks until one of them sees the text."""
    async with asyncio.timeout(20):
        async for _ in stream:
            if file.exists() and file.read_text() == text:
                return


async def test_a_change_is_seen_and_so_is_the_next(tmp_path: Path) -> None:
    stream = looks(lambda: [tmp_path], again_seconds=0.5, debounce_seconds=0.05)
    for text in ("one", "two"):
        (tmp_path / "pools.yaml").write_text(text)
        await seen(stream, tmp_path / "pools.yaml", text)


async def test_a_folder_may_come_later_and_be_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    stream = looks(lambda: [folder], name="instances.json", again_seconds=0.5, debounce_seconds=0.05)
    folder.mkdir()
    (folder / "instances.json").write_text("one")
    await seen(stream, folder / "instances.json", "one")
    folder.rename(tmp_path / "old")
    folder.mkdir()
    (folder / "instances.json").write_text("two")
    await seen(stream, folder / "instances.json", "two")
    (folder / "instances.json").write_text("three")
    await seen(stream, folder / "instances.json", "three")


async def test_a_look_comes_though_nothing_changes(tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        await anext(looks(lambda: [tmp_path], again_seconds=0.2))
