"""The repository keeps its own rules: sizes, maps, links, the lock."""

import re
import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PARTS = ("crds", "scheduler", "router", "operator", "cli")
MODULES = sorted(path for part in PARTS for path in (ROOT / part).rglob("*.py"))
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"].values()
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]
    return [req for req in map(Requirement, texts) if req.name != PROJECT["name"]]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_has_at_most_500_lines_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    assert text.startswith(('"""', 'r"""', "#!")), "a module begins with a docstring"


def test_the_operator_folder_never_shadows_the_standard_module() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


@pytest.mark.parametrize("folder", [*PARTS, "charts", "examples", "tests", "docs"])
def test_each_top_folder_has_a_readme(folder: str) -> None:
    assert (ROOT / folder / "README.md").is_file()


@pytest.mark.parametrize("part", PARTS)
def test_the_readme_of_a_part_names_each_of_its_modules(part: str) -> None:
    readme = (ROOT / part / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", readme, flags=re.DOTALL)
    words = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]+)`", prose))))
    inside = {path for package in (ROOT / part / "src").glob("hexflow_*") for path in package.iterdir()}
    modules = {path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {module for module in modules if not module.startswith("__")} - words == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    relative = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in relative if not (page.parent / link).exists()] == []


def test_the_lock_holds_versions_and_hashes_and_no_address() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    pins = re.split(r"\n(?=[a-z0-9])", lock.strip())
    assert all("==" in pin and "--hash=sha256:" in pin for pin in pins)


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_the_lock_satisfies_every_range_of_the_project(requirement: Requirement) -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock, flags=re.MULTILINE))
    pinned = pins[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(pinned)


def test_the_lock_holds_all_that_its_packages_need() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = set(re.findall(r"^([A-Za-z0-9._-]+)==", lock, flags=re.MULTILINE))
    seen: set[tuple[str, str]] = set()
    waiting = requirements()
    while waiting:
        needed = waiting.pop()
        name = canonicalize_name(needed.name)
        assert name in pins, f"{needed} is not in requirements.lock: run `make lock`"
        new = {(name, extra) for extra in {"", *needed.extras}} - seen
        seen |= new
        for further in map(Requirement, requires(name) or ()):
            if any(further.marker is None or further.marker.evaluate({"extra": extra}) for _, extra in new):
                waiting.append(further)


def test_the_package_says_the_version_of_the_project() -> None:
    assert version("hexflow") == PROJECT["version"]


def test_the_readme_names_the_commands_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"make demo", "make test"} <= set(re.findall(r"make [a-z]+", readme))
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", readme)) <= targets
