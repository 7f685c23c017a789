"""The kernel under virtual time: the model of an inference engine, and what is built on it.

Knows the kernel's types and no server: the emulator gives the engine model HTTP and a real clock.
"""

from hexflow_simulator.engine import Engine
from hexflow_simulator.kvcache import KVCache
from hexflow_simulator.request import (
    EngineCounts,
    EngineOptions,
    EngineOrder,
    EngineRequest,
    Finished,
    Progress,
    RequestTooLargeError,
)

__all__ = [
    "Engine",
    "EngineCounts",
    "EngineOptions",
    "EngineOrder",
    "EngineRequest",
    "Finished",
    "KVCache",
    "Progress",
    "RequestTooLargeError",
]
