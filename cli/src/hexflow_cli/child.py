"""Run a module as a child that dies with its parent: `python -m hexflow_cli.child PARENT_PID MODULE ARGS…`.

On Linux the kernel is asked to kill this process when its parent ends (PR_SET_PDEATHSIG), which works even if the
interpreter is stuck. Elsewhere the keeper (`keeper.py`) does it. PARENT_PID guards the moment between fork and the
request, in which the parent may already have gone.
"""

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process with its parent; do nothing where there is no such request."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


def main(arguments: list[str]) -> None:
    """Tie this process to its parent (a pid of 0 leaves it loose), then become the module."""
    parent, module = int(arguments[0]), arguments[1]
    if parent:
        die_with_parent(parent)
    sys.argv = [module, *arguments[2:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
