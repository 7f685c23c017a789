"""Cost: how long a call takes on an instance, from its profile and what was learned about it."""

from dataclasses import dataclass

from hexflow_scheduler.profile import Profile


@dataclass(frozen=True, slots=True)
class Speed:
    """Pair a profile with the two factors by which the instance is slower than its profile says."""

    profile: Profile
    prefill: float = 1.0
    decode: float = 1.0

    def prefill_seconds(self, prompt_tokens: float, *, cached_tokens: float = 0) -> float:
        """Return the seconds to prefill a prompt whose first ``cached_tokens`` are in the prefix cache."""
        return self.prefill * self.profile.prefill_seconds(prompt_tokens, cached_tokens=cached_tokens)

    def decode_seconds(self, prompt_tokens: float, output_tokens: float, *, batch: float = 1) -> float:
        """Return the seconds to decode ``output_tokens`` among ``batch`` sequences of a like context."""
        profile = self.profile
        context = prompt_tokens + output_tokens / 2
        step = profile.t0 + batch * (profile.t1 + profile.t2 * context)
        return self.decode * output_tokens * step

    def call_seconds(
        self, prompt_tokens: float, output_tokens: float, *, batch: float = 1, cached_tokens: float = 0
    ) -> float:
        """Return the seconds of a whole call, its waiting left out: t_comp."""
        return self.prefill_seconds(prompt_tokens, cached_tokens=cached_tokens) + self.decode_seconds(
            prompt_tokens, output_tokens, batch=batch
        )

    @property
    def quantum(self) -> float:
        """Seconds of the shortest step: the engine decides about its batch no more often than this."""
        return self.decode * (self.profile.t0 + self.profile.t1)
