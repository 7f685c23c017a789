"""Compile the kernel and the simulation with mypyc: ``python scheduler/compile.py`` (or ``make compiled``).

The source stays what it is, and what is installed stays pure Python. A copy of the two packages, with the
modules that a simulated call passes through compiled, is put under ``build/compiled``; with that first on
the path (``PYTHONPATH=build/compiled``) the same programs run some times as fast. It needs a C compiler.
In the copy no record is guarded at run time against being changed, which would be half the cost of making
one; the type checker has seen that none is.

What compiled code must not rely on: the identity of a tuple (``is``), and a narrowed attribute after a
call that may change it.
"""

import argparse
import contextlib
import hashlib
import io
import os
import shutil
import sys
from pathlib import Path

from mypyc.build import mypycify
from setuptools import setup

SOURCES = Path(__file__).parent / "src"
KERNEL = "hexflow_scheduler"
"""Compiled whole."""
SIMULATOR = "hexflow_simulator"
HOT = (
    "account", "batch", "engine", "fleet", "knowledge", "kvcache", "query", "request", "result", "run", "server",
    "simulation", "stagecosts", "underway",
)  # fmt: skip
"""Modules of the simulator that every call passes through; the others make workloads and reports."""


def modules(root: Path) -> list[str]:
    """Return the modules to compile, as paths from the root of the sources."""
    kernel = sorted(
        str(path.relative_to(root)) for path in (root / KERNEL).rglob("*.py") if path.name != "__init__.py"
    )
    return [*kernel, *(f"{SIMULATOR}/{name}.py" for name in HOT)]


def fingerprint() -> str:
    """Return a hash of all that the compiled modules depend on."""
    seen = hashlib.sha256(f"{sys.version} {Path(__file__).read_text(encoding='utf-8')}".encode())
    for package in (KERNEL, SIMULATOR):
        for path in sorted((SOURCES / package).rglob("*.py")):
            seen.update(str(path.relative_to(SOURCES)).encode() + path.read_bytes())
    return seen.hexdigest()


def build(target: Path, *, level: str) -> bool:
    """Build into a folder; return False where what is there is up to date."""
    stamp = target / ".made-from"
    made_from = f"{fingerprint()} {level}"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == made_from:
        return False
    shutil.rmtree(target, ignore_errors=True)
    for package in (KERNEL, SIMULATOR):
        shutil.copytree(SOURCES / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in modules(target):
        path = target / name
        source = path.read_text(encoding="utf-8")
        path.write_text(
            source.replace("@dataclass(frozen=True", "@dataclass(unsafe_hash=True"), encoding="utf-8"
        )
    before = Path.cwd()
    os.chdir(target)
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            extensions = mypycify(["--strict", "--explicit-package-bases", *modules(Path())], opt_level=level)
            setup(
                name="hexflow-compiled", ext_modules=extensions, script_args=["-q", "build_ext", "--inplace"]
            )
    except BaseException:
        sys.stderr.write(said.getvalue())
        raise
    finally:
        os.chdir(before)
    shutil.rmtree(target / "build")
    stamp.write_text(made_from, encoding="utf-8")
    return True


def main() -> None:
    """Build where the sources have changed, and say where."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("build/compiled"))
    parser.add_argument("--level", default="3", help="the C compiler's -O")
    given = parser.parse_args()
    target = given.into.resolve()
    made = build(target, level=given.level)
    sys.stdout.write(f"{target} ({'made' if made else 'up to date'}): put it first on PYTHONPATH\n")


if __name__ == "__main__":
    main()
