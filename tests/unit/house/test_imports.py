"""The arrows between the packages run one way, and the check that says so can fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PARTS = ("crds", "scheduler", "router", "operator", "cli")


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(root / part / "src") for part in PARTS)
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def a_copy(tmp_path: Path) -> Path:
    for part in PARTS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part / "src", tmp_path / part / "src", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("scheduler/src/hexflow_scheduler/call.py", "import time", "The kernel has no clock"),
        ("scheduler/src/hexflow_scheduler/call.py", "import hexflow_router", "Arrows point down"),
        ("scheduler/src/hexflow_scheduler/call.py", "import hexflow_scheduler.kernel", "No two modules"),
        ("router/src/hexflow_sql/extract.py", "import hexflow_scheduler", "SQL knows no scheduler"),
        ("router/src/hexflow_router/app.py", "import hexflow_simulator", "never import each other"),
        ("operator/src/hexflow_operator/cache.py", "import kopf", "kopf has one door"),
        ("operator/src/hexflow_operator/cache.py", "import kubernetes", "The Kubernetes client has one door"),
        (
            "operator/src/hexflow_operator/cache.py",
            "import hexflow_router",
            "in its pods",
        ),
        ("crds/src/hexflow_api/meta.py", "import sqlalchemy", "The resources need pydantic and YAML alone"),
    ],
)
def test_an_import_against_the_arrows_is_refused_by_name(
    a_copy: Path, module: str, line: str, contract: str
) -> None:
    path = a_copy / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    result = lint_imports(a_copy)
    assert result.returncode == 1, result.stdout + result.stderr
    broken = [text for text in result.stdout.splitlines() if " BROKEN" in text]
    assert any(contract in text for text in broken), result.stdout


def test_an_unspoilt_copy_keeps_every_contract(a_copy: Path) -> None:
    result = lint_imports(a_copy)
    assert result.returncode == 0, result.stdout + result.stderr
