"""`hexflow version`: what is installed, for a bug report."""

import platform
from importlib.metadata import PackageNotFoundError, version

from rich.text import Text

from hexflow_cli.console import print_json, stdout

_TELLING = ("fastapi", "aiohttp", "sqlalchemy", "sqlglot", "pydantic", "uvicorn")
"""Libraries whose version explains behaviour."""


def versions() -> dict[str, str]:
    """Return the versions of hexflow, of Python, and of the libraries that matter most."""
    found = {
        "hexflow": version("hexflow"),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for name in _TELLING:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def show(*, as_json: bool) -> None:
    """Print the versions."""
    if as_json:
        print_json(versions())
        return
    for name, text in versions().items():
        stdout.print(Text.assemble((f"{name:<12}", "bold"), text))
