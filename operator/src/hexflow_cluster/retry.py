"""When and how often a request is sent again: full jitter, the API server's Retry-After, and an end.

A controller has a queue that tries again for as long as it takes; here are only the few tries that spare it a detour.
"""

from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

from hexflow_cluster.errors import Busy, ClusterError, Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Say how a request is tried again after 429, 5xx and failures of the connection."""

    attempts: int = 4
    first_seconds: float = 0.2
    """Most that the first pause lasts; each further one twice as much."""
    longest_seconds: float = 5.0
    """Most that a pause lasts, what the API server asks for included."""

    def attempting(self) -> AsyncRetrying:
        """Return the loop to run the request in; the last error comes out as it is."""
        jittered = wait_random_exponential(multiplier=self.first_seconds, max=self.longest_seconds)

        def pause(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = error.retry_after if isinstance(error, ClusterError) else None
            return min(self.longest_seconds, jittered(state) + (asked or 0.0))

        return AsyncRetrying(
            stop=stop_after_attempt(self.attempts),
            wait=pause,
            retry=retry_if_exception_type((Busy, Unavailable)),
            reraise=True,
        )


NO_RETRIES = Retries(attempts=1)
"""For callers that keep time themselves, such as who renews a Lease."""
