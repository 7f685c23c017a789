"""What is installed from a wheel, away from a checkout, can run the example."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_carries_the_example_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    example = {path.name for path in (ROOT / "examples" / "laptop").iterdir() if path.suffix != ".sqlite"}
    assert example <= {Path(name).name for name in names if name.startswith("hexflow_cli/sample/laptop/")}
    assert {name.split("/")[0] for name in names if not name.startswith("hexflow-")} == {
        "hexflow_api",
        "hexflow_cli",
        "hexflow_cluster",
        "hexflow_emulator",
        "hexflow_operator",
        "hexflow_router",
        "hexflow_scheduler",
        "hexflow_simulator",
        "hexflow_sql",
    }


def test_an_installed_wheel_validates_its_own_example(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import hexflow_cli, hexflow_cli.samples as samples, hexflow_api;"
        "assert hexflow_cli.__file__.startswith(sys.argv[1]), hexflow_cli.__file__;"
        "print(len(hexflow_api.load_resources([samples.laptop_resources()]).pools))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(site)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("3", "")
