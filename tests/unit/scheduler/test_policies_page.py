"""The reference of policies says what the code says, and each rule says whose it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from hexflow_scheduler.policy import DISPATCH_RULES, QUEUE_RULES

ROOT = Path(__file__).parents[3]


def test_the_committed_page_is_what_the_script_writes() -> None:
    done = subprocess.run([sys.executable, ROOT / "scheduler/describe_policies.py", "--check"], check=False)
    assert done.returncode == 0, "stale: run make generate"


@pytest.mark.parametrize(
    "rule", [*DISPATCH_RULES.values(), *QUEUE_RULES.values()], ids=lambda rule: rule.name
)
def test_every_rule_says_in_a_line_what_it_does_and_where_it_is_from(rule: type) -> None:
    words = sys.modules[rule.__module__].__doc__ or ""
    assert ": " in words.split("\n\n")[0]
    assert any(word in words for word in ("Source: ", "Models ", "study")), f"{rule.__name__} has no source"
