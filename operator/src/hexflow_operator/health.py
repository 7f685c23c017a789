"""Whether the operator is alive and ready, and the port at which it says so.

Alive: its loop turns, no look hangs, and the watches deliver. Ready: it has reached the API server; one that waits to
lead is ready too, or a rolling update would wait for ever.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from hexflow_operator.metrics import Metrics

STUCK_SECONDS: Final = 300.0
"""After which a look that has not ended hangs."""
DEAD_COMPARISONS: Final = 2
"""Comparisons in a row that found changes of which no watch had told."""
LAG_SECONDS: Final = 30.0
TICK_SECONDS: Final = 5.0


@dataclass(slots=True, kw_only=True)
class Health:
    """Hold what the probes are answered from."""

    longest_reconcile_seconds: Callable[[], float]
    missed_in_a_row: int = 0
    """Comparisons in a row that found missed changes."""
    lag_seconds: float = 0.0
    reached: bool = False
    """Whether the API server has answered."""

    def problems(self) -> list[str]:
        """Return why the process should be started anew; empty: it is alive."""
        found = []
        if (longest := self.longest_reconcile_seconds()) > STUCK_SECONDS:
            found.append(f"a look has been going on for {longest:.0f} s")
        if self.missed_in_a_row >= DEAD_COMPARISONS:
            found.append(f"{self.missed_in_a_row} comparisons in a row found changes that no watch told of")
        if self.lag_seconds > LAG_SECONDS:
            found.append(f"the event loop was {self.lag_seconds:.0f} s late")
        return found

    async def keep_time(self) -> None:
        """Measure for ever how late the event loop is."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            self.lag_seconds = max(0.0, loop.time() - due)


async def serve(
    health: Health, metrics: Metrics, *, host: str, port: int, measure: Callable[[], None]
) -> web.AppRunner:
    """Answer /healthz, /readyz and /metrics until the runner is cleaned up. Raises OSError where the port is taken.

    ``measure`` sets the gauges right before each exposition.
    """

    async def healthz(_: web.Request) -> web.Response:
        problems = health.problems()
        return web.Response(text="\n".join(problems or ["ok"]) + "\n", status=503 if problems else 200)

    async def readyz(_: web.Request) -> web.Response:
        if health.reached:
            return web.Response(text="ok\n")
        return web.Response(text="the API server has not answered yet\n", status=503)

    async def exposition(_: web.Request) -> web.Response:
        measure()
        return web.Response(
            body=metrics.exposition(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    app = web.Application()
    app.add_routes(
        [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", exposition)]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner
