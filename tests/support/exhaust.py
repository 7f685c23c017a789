"""Run every statement that asks for too much, in a process with little memory; print an outcome a line.

python exhaust.py FILE LAYERS      LAYERS: "resources" or "all"
"""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

from hexflow_sql import Layers, Limits, StatementError, open_database
from support.attacks import EXHAUSTION

ADDRESS_SPACE = 1_500_000_000
LIMITS = Limits(seconds=0.4, rows=50)


async def main(path: Path, layers: Layers) -> None:
    """Run them one after the other."""
    database = open_database(
        name="exhausted", dialect="sqlite", dsn=f"sqlite:///{path.name}", base_dir=path.parent, layers=layers
    )
    await database.schema()
    for name, sql in EXHAUSTION.items():
        started = time.monotonic()
        try:
            result = await asyncio.wait_for(database.execute(sql, LIMITS), timeout=30)
            outcome = "Cut" if result.truncated else "Rows"
            cells = sum(len(str(cell)) for row in result.rows for cell in row)
        except StatementError as error:
            outcome, cells = error.reason, 0
        seconds = time.monotonic() - started
        sys.stdout.write(
            json.dumps({"name": name, "outcome": outcome, "cells": cells, "seconds": seconds}) + "\n"
        )
        sys.stdout.flush()
    result = await database.execute("SELECT count(*) FROM t", Limits(seconds=20))
    sys.stdout.write(json.dumps({"name": "still alive", "outcome": str(result.rows[0][0])}) + "\n")
    await database.close()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    chosen = Layers() if sys.argv[2] == "all" else Layers(parser=False, engine=False, resources=True)
    asyncio.run(main(Path(sys.argv[1]), chosen))
