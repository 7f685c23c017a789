"""The kernel under virtual time: the model of an inference engine, and what is built on it.

Knows the kernel's types and no server: the emulator gives the engine model HTTP and a real clock.
"""

from hexflow_simulator.engine import Engine
from hexflow_simulator.fleet import FleetChange, FleetEvent, SimulatedInstance
from hexflow_simulator.knowledge import Knowledge
from hexflow_simulator.kvcache import KVCache
from hexflow_simulator.query import SimulatedCall, SimulatedQuery, SimulatedStage
from hexflow_simulator.request import (
    EngineCounts,
    EngineOptions,
    EngineOrder,
    EngineRequest,
    Finished,
    Progress,
    RequestTooLargeError,
)
from hexflow_simulator.result import CallResult, QueryResult, SimulationResult
from hexflow_simulator.server import EngineModel
from hexflow_simulator.simulation import simulate

__all__ = [
    "CallResult",
    "Engine",
    "EngineCounts",
    "EngineModel",
    "EngineOptions",
    "EngineOrder",
    "EngineRequest",
    "Finished",
    "FleetChange",
    "FleetEvent",
    "KVCache",
    "Knowledge",
    "Progress",
    "QueryResult",
    "RequestTooLargeError",
    "SimulatedCall",
    "SimulatedInstance",
    "SimulatedQuery",
    "SimulatedStage",
    "SimulationResult",
    "simulate",
]
