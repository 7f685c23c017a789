"""A trace of 100 MB is read within little memory; the limit is the operating system's, so it cannot be argued with."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.tracefiles import HEADER, a_line

READ = """
import resource, sys
from pathlib import Path
from hexflow_simulator.importing import open_trace
resource.setrlimit(resource.RLIMIT_AS, (500 * 1024 * 1024,) * 2)
trace = open_trace(Path(sys.argv[1]))
print(trace.count, sum(1 for _ in trace))
"""


def a_large_trace(path: Path, size: int) -> int:
    call = {
        "promptTokens": 9000,
        "outputTokens": 300,
        "prefix": [["template", 3000], ["template/schema", 2500]],
    }
    stages = [{"name": f"stage-{number}", "calls": [call] * 4} for number in range(5)]
    line = a_line("ID", 7.0, stages=stages)
    head, _, tail = line.partition('"ID", "arrival": 7.0')
    count = size // len(line) + 1
    with path.open("w") as file:
        file.write(HEADER + "\n")
        file.writelines(f'{head}"q{number}", "arrival": {number}{tail}\n' for number in range(count))
    return count


def a_large_csv(path: Path, size: int) -> int:
    note = "what the gateway also wrote down; " * 30
    count = size // len(note)
    with path.open("w") as file:
        file.write("arrival_s,input_tokens,output_tokens,note\n")
        file.writelines(f"{number},900,100,{note}\n" for number in range(count))
    return count


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is POSIX's")
@pytest.mark.parametrize(("name", "write"), [("large.jsonl", a_large_trace), ("large.csv", a_large_csv)])
def test_a_hundred_megabytes_are_read_under_a_limit_of_five_hundred(
    tmp_path: Path, name: str, write: Callable[[Path, int], int]
) -> None:
    path = tmp_path / name
    count = write(path, 100_000_000)
    assert path.stat().st_size > 100_000_000
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # The limit is what is tested. The peak that a process reports is no use here: it inherits its parent's.
    assert [int(word) for word in done.stdout.split()] == [count, count]
