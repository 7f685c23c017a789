# ruff: noqa: T201  It is run by hand, and what it prints is its result.
"""HexGen-Flow's figures beside ours on its authors' settings: ``make bench-paper`` (minutes; goes on where it was).

Writes a page. Run it with ``PYTHONPATH=build/compiled`` after ``make compiled``: it is faster and finds the same.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from hexflow_simulator.ledger import Ledger
from hexflow_simulator.paperpage import page
from hexflow_simulator.reproduction import SPOTS, results_at

CAUSES = Path(__file__).with_name("paper_causes.md")
"""Why figures differ: written by hand, part of the page."""


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--code", required=True, help="commit that runs")
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    with Ledger(given.results, code=given.code) as ledger:
        known = dict(ledger.by_key)
        with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
            running = [pool.submit(results_at, spot, known) for spot in SPOTS]
            for done, future in enumerate(as_completed(running), start=1):
                for result in future.result():
                    ledger.add(result)
                print(f"{done} of {len(SPOTS)} spots, {len(ledger)} trials", flush=True)
        causes = CAUSES.read_text(encoding="utf-8")
        given.page.write_text(page(ledger.by_key, code=given.code, causes=causes), encoding="utf-8")
    print(f"{given.page} is written")


if __name__ == "__main__":
    main()
