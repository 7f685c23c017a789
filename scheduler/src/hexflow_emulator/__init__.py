"""A vLLM stand-in that keeps a GPU's time: the same HTTP, the same metrics, no GPU.

It takes the arguments of ``vllm serve``, so a pod's template is the same for both. What it says comes
from an answer book or is filler; it never invents an answer. Knows the engine model and no router.
"""

from hexflow_emulator.app import emulator_app
from hexflow_emulator.arguments import EmulatorOptions, parse
from hexflow_emulator.book import AnswerBook
from hexflow_emulator.errors import BookError, EmulatorError, FaultError
from hexflow_emulator.faults import Fault
from hexflow_emulator.lengths import Lengths
from hexflow_emulator.main import main

__all__ = [
    "AnswerBook",
    "BookError",
    "EmulatorError",
    "EmulatorOptions",
    "Fault",
    "FaultError",
    "Lengths",
    "emulator_app",
    "main",
    "parse",
]
