"""Running a contest: over all cores or here, results as they come, progress in queries, and a stop that is obeyed at once."""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context
from typing import Any

from hexflow_simulator import worker
from hexflow_simulator.contest import Contest, Course, Run, RunResult, run

_POLL_SECONDS = 0.2
_STRIDE = 16
"""Queries after which a run says how far it is, and looks whether it should stop."""


class Stopped(Exception):
    """Somebody has stopped the contest."""


def run_all(
    contest: Contest,
    course: Course,
    runs: Sequence[Run],
    *,
    workers: int = 1,
    progress: Callable[[int], None] = lambda queries: None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[RunResult]:
    """Yield the result of each run as it ends, the same whatever ``workers`` is.

    ``progress`` is told how many queries have ended in all; ``stop`` is asked often, and True raises Stopped.
    """
    if workers == 1 or len(runs) == 1:
        yield from _run_here(contest, course, runs, progress=progress, stop=stop)
    else:
        yield from _run_there(contest, course, runs, workers=workers, progress=progress, stop=stop)


def _run_here(
    contest: Contest,
    course: Course,
    runs: Sequence[Run],
    *,
    progress: Callable[[int], None],
    stop: Callable[[], bool],
) -> Iterator[RunResult]:
    ended = 0

    def note(number: int) -> None:
        if number % _STRIDE == 0:
            progress(ended + number)
            if stop():
                raise Stopped

    for each in runs:
        result = run(contest, course, each, progress=note)
        ended += contest.traffic.count
        progress(ended)
        yield result


def _run_there(
    contest: Contest,
    course: Course,
    runs: Sequence[Run],
    *,
    workers: int,
    progress: Callable[[int], None],
    stop: Callable[[], bool],
) -> Iterator[RunResult]:
    context = get_context("spawn")
    ended, stopped = context.Value("q", 0), context.Event()
    shared = (contest, course, ended, stopped)
    with ProcessPoolExecutor(
        min(workers, len(runs)), mp_context=context, initializer=_begin, initargs=shared
    ) as pool:
        waiting = iter(runs)
        running: set[Future[RunResult]] = set()
        try:
            while True:
                for each in islice(waiting, workers + 1 - len(running)):
                    running.add(pool.submit(_work, each))
                if not running:
                    return
                done, running = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                progress(ended.value)
                if stop():
                    raise Stopped
                for future in done:
                    yield future.result()
        finally:
            stopped.set()
            for future in running:
                future.cancel()


_shared: list[Any] = []
"""Of a worker: contest, course, the count of queries, whether to stop."""


def _begin(*shared: Any) -> None:
    worker.begin(on_ctrl_c=signal.SIG_IGN)  # who began us tells us to stop
    _shared[:] = shared


def _work(each: Run) -> RunResult:
    contest, course, ended, stopped = _shared
    last = 0

    def note(number: int) -> None:
        nonlocal last
        if number - last >= _STRIDE:
            _count(ended, number - last)
            last = number
            if stopped.is_set():
                raise Stopped

    result = run(contest, course, each, progress=note)
    _count(ended, contest.traffic.count - last)
    return result


def _count(ended: Any, queries: int) -> None:
    with ended.get_lock():
        ended.value += queries
