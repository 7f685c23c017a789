"""Cost: how long a call takes on an instance, from its profile and what was learned about it."""

from collections.abc import Sequence
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

    def step_seconds(self, sequences: float, context: float) -> float:
        """Return the seconds of a decode step of so many sequences, which attend to ``context`` tokens in all."""
        profile = self.profile
        return self.decode * (profile.t0 + profile.t1 * sequences + profile.t2 * context)

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


class MeanSpeed:
    """Take for a call the mean of what several speeds take for it: seconds are linear in the five times."""

    __slots__ = ("_c1", "_c2", "_step", "_t2")

    def __init__(self, speeds: Sequence[Speed]) -> None:
        step = t2 = c1 = c2 = 0.0
        for speed in speeds:
            profile, prefill, decode = speed.profile, speed.prefill, speed.decode
            step += decode * (profile.t0 + profile.t1)
            t2 += decode * profile.t2
            c1 += prefill * profile.c1
            c2 += prefill * profile.c2
        part = 1 / len(speeds) if speeds else 0.0
        self._step = step * part
        self._t2 = t2 * part
        self._c1 = c1 * part
        self._c2 = c2 * part

    def call_seconds(self, prompt_tokens: float, output_tokens: float) -> float:
        """Return the mean seconds of a call alone and cold; 0 where there are no speeds."""
        prefill = prompt_tokens * (self._c1 + self._c2 * prompt_tokens / 2)
        return prefill + output_tokens * (self._step + self._t2 * (prompt_tokens + output_tokens / 2))
