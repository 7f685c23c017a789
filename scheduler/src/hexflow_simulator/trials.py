"""Many trials: run over all cores, in an order that treats policies alike, each result kept as it comes."""

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from itertools import islice
from multiprocessing import get_context

from hexflow_simulator import worker
from hexflow_simulator.ledger import Ledger
from hexflow_simulator.trial import Trial, TrialResult, run_trial

Progress = Callable[[int, int, TrialResult | None], None]
"""Is told how many trials are there, of how many, and the last one."""


def run_trials(
    trials: Iterable[Trial], ledger: Ledger, *, workers: int | None = None, progress: Progress | None = None
) -> None:
    """Run those trials that the ledger lacks.

    Trials go out in the order given, so callers interleave policies: what else the machine does then falls
    on all of them alike. ``workers`` is the number of processes, by default one for each core; 1 runs here.
    """
    wanted = list(dict.fromkeys(trials))
    missing = [trial for trial in wanted if trial not in ledger]
    done = len(wanted) - len(missing)

    def note(result: TrialResult | None) -> None:
        if progress is not None:
            progress(done, len(wanted), result)

    note(None)
    if workers == 1 or len(missing) <= 1:
        for trial in missing:
            result = run_trial(trial)
            ledger.add(result)
            done += 1
            note(result)
        return
    with ProcessPoolExecutor(
        workers or os.cpu_count(),
        mp_context=get_context("spawn"),
        initializer=partial(worker.begin, on_ctrl_c=signal.SIG_DFL),
    ) as pool:
        queue = iter(missing)
        running: set[Future[TrialResult]] = set()
        try:
            while True:
                # A few more than there are workers, so that none idles and a stop has little to wait for.
                for trial in islice(queue, 2 * (workers or os.cpu_count() or 1) - len(running)):
                    running.add(pool.submit(run_trial, trial))
                if not running:
                    return
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    result = future.result()
                    ledger.add(result)
                    done += 1
                    note(result)
        except BaseException:
            for future in running:
                future.cancel()
            raise


def interleaved(groups: Sequence[Sequence[Trial]]) -> list[Trial]:
    """Return the trials of several groups in turn: the first of each, then the second of each, and so on."""
    longest = max((len(group) for group in groups), default=0)
    return [group[place] for place in range(longest) for group in groups if place < len(group)]
