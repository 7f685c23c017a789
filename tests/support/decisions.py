"""Questions to a kernel's decisions."""

from collections.abc import Iterable

from hexflow_scheduler import Abort, Decision, End, Outcome, Place, Send


def placed(decisions: Iterable[Decision]) -> dict[str, str]:
    """Return where each call was put, the last time."""
    return {d.call_id: d.instance_id for d in decisions if isinstance(d, Place)}


def sent(decisions: Iterable[Decision]) -> list[str]:
    """Return the calls that were sent, in order."""
    return [d.call_id for d in decisions if isinstance(d, Send)]


def aborted(decisions: Iterable[Decision]) -> list[str]:
    """Return the calls that were aborted, in order."""
    return [d.call_id for d in decisions if isinstance(d, Abort)]


def ended(decisions: Iterable[Decision]) -> dict[str, Outcome]:
    """Return how calls ended."""
    return {d.call_id: d.outcome for d in decisions if isinstance(d, End)}


def the_place(decisions: Iterable[Decision], call_id: str) -> Place:
    """Return the one Place of a call."""
    (place,) = [d for d in decisions if isinstance(d, Place) and d.call_id == call_id]
    return place


def the_send(decisions: Iterable[Decision], call_id: str) -> Send:
    """Return the one Send of a call."""
    (send,) = [d for d in decisions if isinstance(d, Send) and d.call_id == call_id]
    return send


def the_end(decisions: Iterable[Decision], call_id: str) -> End:
    """Return the one End of a call."""
    (end,) = [d for d in decisions if isinstance(d, End) and d.call_id == call_id]
    return end
