"""What can go wrong when the kernel is told something: a few errors, each saying what to do instead."""


class SchedulerError(Exception):
    """Refuse an input; nothing has changed by it."""


class UnknownCall(SchedulerError):
    """No live call has this id."""

    def __init__(self, call_id: str) -> None:
        super().__init__(
            f"call {call_id!r} is not known: it never arrived or has ended already; "
            "report each call once, and nothing after its End"
        )
        self.call_id = call_id


class CallNotRunning(SchedulerError):
    """The call is known, but no instance runs it."""

    def __init__(self, call_id: str) -> None:
        super().__init__(
            f"call {call_id!r} runs on no instance: it waits, or was aborted and is to be sent again; "
            "report finished and failed only between its Send and its Abort"
        )
        self.call_id = call_id


class DuplicateCall(SchedulerError):
    """A live call has this id already."""

    def __init__(self, call_id: str) -> None:
        super().__init__(
            f"call {call_id!r} arrived already and has not ended; give each call an id of its own"
        )
        self.call_id = call_id


class UnknownInstance(SchedulerError):
    """No instance has this id."""

    def __init__(self, instance_id: str) -> None:
        super().__init__(f"instance {instance_id!r} is not known; tell the kernel of it first (instance)")
        self.instance_id = instance_id


class InvalidInput(SchedulerError):
    """A value makes no sense (a negative length, an instant that is no number)."""


class UnknownPolicy(SchedulerError):
    """No policy, dispatch rule or queue rule has this name."""


class InvalidParameter(SchedulerError):
    """A parameter is unknown to the policy or outside its bounds."""


class InvalidTemplate(SchedulerError):
    """A workflow's stages do not make a pipeline."""


class InvalidTransition(SchedulerError):
    """A stage cannot do this now (finish before it started, start before it is ready)."""


class InvalidRecord(SchedulerError):
    """A line of an event log cannot be read, or records do not make a log."""
