"""A browser that opens pages and tells what a reader would see of them."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.laptop import ROOT

BROWSER = ROOT / "tests" / "browser"


def browser_or_skip() -> Path:
    """Return the environment in which pages are looked at, or skip the test where it was not installed."""
    where = subprocess.run([BROWSER / "install.sh", "--where"], check=True, text=True, stdout=subprocess.PIPE)
    venv = Path(where.stdout.strip())
    if not (venv / ".browser").exists():
        reason = "no browser is installed; `make browser` installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return venv


def seen_of(pages: Sequence[Path], folder: Path) -> list[dict[str, Any]]:
    """Return what is seen of pages at two widths, light and dark; leaves screenshots in the folder."""
    venv = browser_or_skip()
    done = subprocess.run(
        [venv / "bin" / "python", BROWSER / "look.py", folder, *pages],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
