"""One emulated instance: an engine model with a clock, a voice, metrics and faults."""

import os
from collections.abc import Awaitable, Callable

from hexflow_emulator.arguments import EmulatorOptions
from hexflow_emulator.book import AnswerBook
from hexflow_emulator.errors import FaultError
from hexflow_emulator.faults import Fault, Faults
from hexflow_emulator.generation import TICK_SECONDS, Generation, Runner
from hexflow_emulator.metrics import EngineMetrics
from hexflow_emulator.speech import BookSpeech, FillerSpeech, NoBookSpeech, Speech
from hexflow_scheduler import TimeScale
from hexflow_simulator import Engine, Finished


def end_process() -> None:
    """End this process at once, as a crash does."""
    os._exit(1)


class EmulatedInstance:
    """Hold everything of one instance but its HTTP.

    ``clock`` reads real seconds since the epoch, ``sleep`` sleeps real seconds; the time scale is applied
    here. ``die`` is called by the fault ``die-after``.
    """

    def __init__(
        self,
        options: EmulatorOptions,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        die: Callable[[], None] = end_process,
    ) -> None:
        self.options = options
        self._clock = clock
        self._scale = TimeScale(options.time_scale, clock())
        self._die = die
        self.engine = Engine(options.profile, options.engine)
        self.metrics = EngineMetrics(self.engine, options=options, started=clock())
        self.speech = _speech(options)
        self.runner = Runner(
            engine=self.engine,
            clock=self.now,
            sleep=lambda seconds: sleep(self._scale.real_seconds(seconds)),
            tick_seconds=TICK_SECONDS * options.time_scale,
            on_finished=self._finished,
        )
        self.faults = Faults(seed=options.seed)
        self.set_faults(list(options.faults), at_start=True)
        self.draining = False
        """Whether it finishes what it has and takes nothing new."""

    def now(self) -> float:
        """Return emulated seconds since the epoch."""
        return self._scale.emulated(self._clock())

    def arrived(self) -> None:
        """Count a call as it arrives; it may be the one that the process dies of."""
        if self.faults.dies():
            self._die()

    def set_faults(self, faults: list[Fault], *, at_start: bool = False) -> None:
        """Put these faults, and no others, in force. Raises FaultError for one that has its time only at the start."""
        if not at_start and any(fault.name == "slow-start" for fault in faults):
            raise FaultError("slow-start has its time only when the process starts; give it as --fault")
        self.faults.replace(faults)
        self.runner.set_slowness(self.faults.value("slow") or 1.0)
        if frozen := self.faults.value("freeze"):
            self.runner.freeze(frozen)

    def metrics_text(self) -> bytes:
        """Return the metrics as of now."""
        self.runner.look()
        return self.metrics.text()

    def _finished(self, generation: Generation, finished: Finished) -> None:
        self.metrics.ended(finished, prompt_tokens=generation.request.prompt_tokens, reason=generation.reason)


def _speech(options: EmulatorOptions) -> Speech:
    if options.book is not None:
        return BookSpeech(AnswerBook.load(options.book))
    if options.lengths is not None:
        return FillerSpeech(options.lengths, seed=options.seed)
    return NoBookSpeech()
