"""Stopping a statement: when its time is up, when it is withdrawn, and when SQLite does not listen.

Real time and threads, not the event loop's clock: the statement itself runs in a thread, and the loop may
be busy, or its clock a test's.
"""

import math
import threading
from collections.abc import Callable
from types import TracebackType

PROGRESS_STEPS = 10_000
"""Steps of SQLite's machine between two looks at the clock. Each look takes Python's lock; the watchdog's
interrupt, which SQLite checks in every loop, needs none and comes first."""

PREPARATION_QUESTIONS = 20_000
"""Most authorizer questions while one statement is prepared; bombs of doubling names ask millions."""

GRACE_SECONDS = 2.0
"""How long after its time a statement may take to notice; then its thread is left to end on its own."""

THREAD_NAME = "hexflow-sql-watchdog"

_REPEAT_SECONDS = 0.02


class Watch:
    """Know when a statement must stop. Asked from the driver's thread."""

    def __init__(self, *, clock: Callable[[], float], seconds: float) -> None:
        self.seconds = seconds
        self.woken = threading.Event()
        """Set once there is no more to wait for: the statement has ended, or must."""
        self._clock = clock
        self._deadline = clock() + seconds
        self._stopped = False
        self.started = False
        """Whether its statement has had its turn."""
        self._questions = 0

    def start(self, seconds: float | None = None) -> None:
        """Count the seconds from now on, its own where none are given."""
        self.started = True
        self._deadline = self._clock() + (self.seconds if seconds is None else seconds)

    def stop(self) -> None:
        """Make the statement stop at its next step."""
        self._stopped = True
        self.woken.set()

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self._clock() >= self._deadline

    @property
    def overasked(self) -> bool:
        """Whether preparation asked more than a statement may."""
        return self._questions > PREPARATION_QUESTIONS

    def expired(self) -> int:
        """Answer SQLite's progress handler: non-zero interrupts the statement."""
        return int(self._stopped or self.over)

    def prepares(self) -> bool:
        """Count a question of the authorizer; False when preparation takes too long or asks too much."""
        self._questions += 1
        return not self.overasked and not self.expired()


class Watchdog:
    """Interrupt a connection once its statement must stop, again and again until it lets go.

    SQLite forgets an interrupt that comes while it prepares. ``stuck`` is called once, from the watchdog's
    thread, if the statement still runs after the grace.
    """

    def __init__(self, watch: Watch, *, interrupt: Callable[[], None], stuck: Callable[[], None]) -> None:
        self._watch = watch
        self._interrupt = interrupt
        self._stuck = stuck
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._watch.woken.set()

    def _run(self) -> None:
        self._watch.woken.wait(self._watch.seconds if math.isfinite(self._watch.seconds) else None)
        waited = 0.0
        told = False
        while not self._done.is_set():
            self._interrupt()
            if waited >= GRACE_SECONDS and not told:
                told = True
                self._stuck()
            waited += _REPEAT_SECONDS
            self._done.wait(_REPEAT_SECONDS)
