"""How a process that simulates for another behaves: it dies with that other, and says nothing of ctrl-C."""

import os
import signal
from multiprocessing import parent_process
from threading import Thread


def begin(*, on_ctrl_c: signal.Handlers) -> None:
    """Begin as a worker. Ctrl-C reaches every process of a terminal: SIG_DFL ends this one quietly, SIG_IGN waits to be told."""
    signal.signal(signal.SIGINT, on_ctrl_c)
    Thread(target=_outlive_nobody, daemon=True).start()


def _outlive_nobody() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
