"""Files of traces, good and bad."""

import json
from pathlib import Path
from typing import Any

HEADER = '{"hexflowTrace": 1}'


def a_line(query_id: str = "q1", arrival: object = 0.0, **changes: Any) -> str:
    """Return a query of a trace file as a line of JSON."""
    usual: dict[str, Any] = {
        "queryId": query_id,
        "arrival": arrival,
        "model": "coder",
        "stages": [{"name": "draft", "calls": [{"promptTokens": 900, "outputTokens": 100}]}],
    }
    return json.dumps({**usual, **changes})


def a_file(folder: Path, *lines: str, name: str = "trace.jsonl", end: str = "\n") -> Path:
    """Write lines into a file and return its path."""
    path = folder / name
    path.write_bytes("".join(line + end for line in lines).encode())
    return path
