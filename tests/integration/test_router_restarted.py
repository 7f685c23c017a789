"""A router that is started anew knows what the one before it had learned."""

import json
from pathlib import Path

from support.resources import MODEL
from support.router import WORKFLOW, a_laptop, a_router


async def test_a_restarted_router_goes_on_with_what_was_learned(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path)
    journal = tmp_path / "state" / "journal.sqlite"
    async with a_router(laptop, journal=journal, event_log=tmp_path / "one.jsonl") as router:
        for _ in range(4):
            assert (await router.ask()).status_code == 200
        before = router.router.succession.kernel.estimates
    async with a_router(laptop, journal=journal, event_log=tmp_path / "two.jsonl") as router:
        after = router.router.succession.kernel.estimates
        assert after.to_data() == before.to_data()
        assert after.query_seconds(WORKFLOW) is not None
        assert after.prompt_tokens(WORKFLOW, "schema-linking", MODEL) < 3000  # the prior is 4,000
        assert (await router.ask()).status_code == 200
    # the new log begins with it, so that a replay knows it too
    start = json.loads((tmp_path / "two.jsonl").read_text().splitlines()[0])
    assert start["with"]["estimates"] == before.to_data()


async def test_a_router_starts_in_spite_of_a_spoilt_file(tmp_path: Path) -> None:
    laptop = a_laptop(tmp_path)
    learned = tmp_path / "learned.json"
    learned.write_text("{")
    async with a_router(laptop, estimates=learned) as router:
        assert (await router.ask()).status_code == 200
    assert json.loads(learned.read_text())["version"]
    assert learned.with_name("learned.json.refused").read_text() == "{"
