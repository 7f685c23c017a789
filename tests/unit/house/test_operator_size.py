"""The operator stays small, and Kubernetes' libraries come in by one door each."""

import ast
import io
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OPERATOR = ROOT / "operator" / "src" / "hexflow_operator"
MOST_LINES = 3000
"""Lines of code of the operator: blank lines, comments and docstrings do not count, nor does `hexflow_cluster`."""
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(text: str) -> int:
    """Count the lines that hold code; text that stands alone, such as a docstring, is none."""
    alone = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(code - alone)


def importers(library: str) -> list[str]:
    """Return the modules of all packages that import a library, by any form of import."""
    found = []
    for path in sorted(ROOT.glob("*/src/**/*.py")):
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module or "")
        if library in {name.partition(".")[0] for name in names}:
            found.append(path.relative_to(ROOT).as_posix())
    return found


def test_only_code_is_counted() -> None:
    assert lines_of_code('"""A module."""\n\n# why\nX = """a\nb"""\n"""What X is."""\n') == 2
    assert lines_of_code('def f() -> int:\n    """Say\n    one.\n    """\n    return 1  # one\n') == 2


def test_the_operator_has_less_than_3000_lines_of_code() -> None:
    lines = sum(lines_of_code(path.read_text(encoding="utf-8")) for path in OPERATOR.rglob("*.py"))
    assert 1000 < lines < MOST_LINES, (
        f"{lines} lines: look for what is said twice before you add more (comments do not count)"
    )


@pytest.mark.parametrize(
    ("library", "door"),
    [
        ("kopf", "operator/src/hexflow_operator/controller.py"),
        ("kubernetes", "operator/src/hexflow_cluster/connection.py"),
    ],
)
def test_a_library_of_kubernetes_is_imported_in_one_module(library: str, door: str) -> None:
    assert importers(library) == [door]
