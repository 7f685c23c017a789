"""The kernel: which instance runs each call, in which order, and what becomes of it.

Pure and with explicit time: the router drives it with a clock, the simulator with an event heap, and an
event log is replayed by it alone. It must not know a clock, a network, a file, a log or a framework, nor
the text of any prompt.
"""

from hexflow_scheduler.budget import stage_budget
from hexflow_scheduler.call import Call, PrefixBlock, Usage
from hexflow_scheduler.cost import Speed
from hexflow_scheduler.decision import Abort, Decision, End, Outcome, Place, Send
from hexflow_scheduler.errors import (
    CallNotRunning,
    DuplicateCall,
    InvalidInput,
    InvalidParameter,
    InvalidRecord,
    InvalidTemplate,
    InvalidTransition,
    SchedulerError,
    UnknownCall,
    UnknownInstance,
    UnknownPolicy,
)
from hexflow_scheduler.estimate import Estimates, estimate_tokens
from hexflow_scheduler.eventlog import Record, decode, encode
from hexflow_scheduler.fleet import serves
from hexflow_scheduler.instance import Instance, InstanceState
from hexflow_scheduler.kernel import Kernel
from hexflow_scheduler.parameter import Parameter, Parameters
from hexflow_scheduler.policy import DEFAULT_POLICY, Policy, policy_names
from hexflow_scheduler.profile import Profile
from hexflow_scheduler.recording import RecordingKernel
from hexflow_scheduler.relief import Admission, Relief
from hexflow_scheduler.replay import Difference, Replayed, replay
from hexflow_scheduler.timescale import TimeScale
from hexflow_scheduler.view import InstanceView, KernelView, RunningCall, WaitingCall
from hexflow_scheduler.workflow import Progress, StageProgress, StageState, StageTemplate, WorkflowTemplate

__all__ = [
    "DEFAULT_POLICY",
    "Abort",
    "Admission",
    "Call",
    "CallNotRunning",
    "Decision",
    "Difference",
    "DuplicateCall",
    "End",
    "Estimates",
    "Instance",
    "InstanceState",
    "InstanceView",
    "InvalidInput",
    "InvalidParameter",
    "InvalidRecord",
    "InvalidTemplate",
    "InvalidTransition",
    "Kernel",
    "KernelView",
    "Outcome",
    "Parameter",
    "Parameters",
    "Place",
    "Policy",
    "PrefixBlock",
    "Profile",
    "Progress",
    "Record",
    "RecordingKernel",
    "Relief",
    "Replayed",
    "RunningCall",
    "SchedulerError",
    "Send",
    "Speed",
    "StageProgress",
    "StageState",
    "StageTemplate",
    "TimeScale",
    "UnknownCall",
    "UnknownInstance",
    "UnknownPolicy",
    "Usage",
    "WaitingCall",
    "WorkflowTemplate",
    "decode",
    "encode",
    "estimate_tokens",
    "policy_names",
    "replay",
    "serves",
    "stage_budget",
]
