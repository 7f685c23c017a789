"""The resource layer alone against statements that never end or need all memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.attacks import EXHAUSTION
from support.sql import a_sqlite_file

SUPPORT = Path(__file__).resolve().parents[1] / "support"
SCRIPT = """
CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO t SELECT i, 'text number ' || i FROM n;
"""
HARMLESS = {"many like", "printf width", "glob bomb"}
"""May end with rows: SQLite is quick about them, or answers them with nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("layers", ["resources", "all"])
def test_no_statement_takes_more_time_or_memory_than_it_may(layers: str, tmp_path: Path) -> None:
    path = a_sqlite_file(tmp_path, SCRIPT)
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "exhaust.py"), str(path), layers],
        capture_output=True,
        text=True,
        timeout=110,
        env={**os.environ, "PYTHONPATH": str(SUPPORT.parent)},
        check=False,
    )
    outcomes = {entry["name"]: entry for entry in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0, done.stderr[-2000:]
    assert outcomes.pop("still alive")["outcome"] == "2000"
    assert outcomes.keys() == EXHAUSTION.keys()
    unbounded = {
        name: entry for name, entry in outcomes.items() if entry["outcome"] == "Rows" and name not in HARMLESS
    }
    assert not unbounded
    assert all(entry["cells"] < 5_000_000 for entry in outcomes.values())
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
