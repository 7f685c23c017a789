"""The speed of an instance: five times and two capacities, from which every prediction is made.

A profile belongs to one GPU type, model and tensor parallel degree. The same seven names are used in
the resources, the kernel, the simulator and the emulator. This module knows no GPU by name.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Hold the coefficients of the linear step model of a continuously batching engine.

    One engine step with ``batch`` running calls, ``context`` tokens attended to in all, and a prefill
    chunk of ``chunk`` tokens at depth ``depth`` of its prompt takes
    ``t0 + t1*batch + t2*context + chunk*(c1 + c2*depth)`` seconds; every running call gets one token.
    """

    t0: float
    """Seconds of a decode step whatever the batch (reading the weights)."""
    t1: float
    """Seconds a step grows by for each running call."""
    t2: float
    """Seconds a step grows by for each token of context attended to."""
    c1: float
    """Seconds to prefill one prompt token."""
    c2: float
    """Seconds that prefilling a token grows by for each token before it."""
    kv_tokens: int
    """Tokens that fit the KV cache."""
    slots: int
    """Calls that may run at once (vLLM's ``max_num_seqs``)."""

    def slowed(self, *, prefill: float, decode: float) -> "Profile":
        """Return the profile of an instance that takes so many times as long to prefill, and to decode."""
        return replace(
            self,
            t0=self.t0 * decode,
            t1=self.t1 * decode,
            t2=self.t2 * decode,
            c1=self.c1 * prefill,
            c2=self.c2 * prefill,
        )

    def prefill_seconds(self, prompt_tokens: float, *, cached_tokens: float = 0) -> float:
        """Return the seconds to prefill a prompt of which ``cached_tokens`` lead in the prefix cache."""
        uncached = max(0.0, prompt_tokens - cached_tokens)
        return uncached * (self.c1 + self.c2 * (prompt_tokens - uncached / 2))

    def decode_seconds(self, prompt_tokens: float, output_tokens: float, *, batch: int = 1) -> float:
        """Return the seconds to decode ``output_tokens`` among ``batch`` calls of a like context."""
        context = prompt_tokens + output_tokens / 2
        return output_tokens * (self.t0 + batch * (self.t1 + self.t2 * context))
