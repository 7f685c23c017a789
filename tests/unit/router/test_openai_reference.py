"""The page about OpenAI calls names every code and every header that there is."""

import re
from pathlib import Path

from hexflow_router.errors import STATUS_OF_REASON
from hexflow_router.exchange import CallFailed

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
SOURCES = ROOT / "router" / "src" / "hexflow_router"
MODULES = ("openai", "body", "bounds", "hints", "pending", "driver")


def found(pattern: str) -> set[str]:
    texts = [(SOURCES / f"{module}.py").read_text(encoding="utf-8") for module in MODULES]
    return {match for text in texts for match in re.findall(pattern, text)}


def test_every_code_of_an_error_is_on_the_page() -> None:
    codes = found(r'code="(\w+)"')
    assert len(codes) > 10
    assert {code for code in codes if f"`{code}`" not in PAGE} == set()


def test_every_header_that_a_caller_may_send_is_on_the_page() -> None:
    said = {f"x-hexflow-{name}" for name in found(r'said\("([a-z-]+)"\)')}
    gateway = {f"x-gateway-inference-{name}" for name in found(r'gateway\("([a-z-]+)"\)')}
    assert len(said) == 4
    assert {header for header in said | gateway if f"`{header}`" not in PAGE} == set()


def test_every_reason_that_a_call_may_fail_with_is_on_the_page() -> None:
    said = " ".join((CallFailed.__doc__ or "").split())
    reasons = re.findall(r"[A-Z]\w+", said.partition("one of ")[2])
    assert len(reasons) > 15
    # A query that fails for one of the others is the question's own fault, or nobody's: 422 and 499.
    assert set(reasons) - set(STATUS_OF_REASON) == {"ContextTooLong", "Cancelled"}
    assert {reason for reason in reasons if f"`{reason}`" not in PAGE} == set()
