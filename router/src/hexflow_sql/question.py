"""What a person asks, and when."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Hold a question in plain words."""

    text: str
    evidence: str = ""
    """What the asker knows of the data (``refunds are negative amounts``)."""
    reference_time: datetime | None = None
    """The instant that ``today`` means, with its zone; prompts name the day alone, so that they can be cached."""
