"""What every test session shares: the last lines say what was left out, and under CI nothing may be."""

import os
import signal
from collections import Counter

import pytest

pytest_plugins = ["support.cluster", "support.definitions", "support.operators", "support.objects"]

REMEDIES = {"vllm": "make vllm", "browser": "make browser", "cluster": "make cluster"}
"""Marker of an optional part -> the command that adds it."""


def pytest_configure() -> None:
    # A shell without job control starts what it puts in the background with ctrl-C ignored, and a child inherits
    # that: the tests that interrupt one would wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def left_out(skipped: list[pytest.TestReport]) -> Counter[str]:
    """Count the skipped tests of each optional part."""
    return Counter(marker for report in skipped for marker in REMEDIES if marker in report.keywords)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for marker, count in left_out(terminalreporter.stats.get("skipped", [])).items():
        terminalreporter.write_line(
            f"left out: {count} tests of {marker}; add them with `{REMEDIES[marker]}`"
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or os.environ.get("CI") != "true":
        return
    if left_out(reporter.stats.get("skipped", [])):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
