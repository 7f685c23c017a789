"""What decodes in a modelled engine, so kept that no step touches each run.

A run that enters at step ``s`` with ``r`` tokens to go ends at step ``s + r``: the head of a heap says how
far to jump. Which steps need a new block is known by residues modulo the block size.
"""

import heapq
from collections.abc import Iterator
from itertools import count

from hexflow_simulator.run import Run


class DecodeBatch:
    """Hold the decoding runs and count their steps, tokens and blocks."""

    def __init__(self, *, block_tokens: int) -> None:
        self.runs: dict[str, Run] = {}
        self.steps = 0
        """Steps taken since the engine began."""
        self.context = 0
        """Tokens that all of them attend to."""
        self._ends: list[tuple[int, int, Run]] = []
        self._entries = count()
        self._residues = [0] * block_tokens

    def __len__(self) -> int:
        return len(self.runs)

    def enter(self, run: Run) -> None:
        """Let a run decode from the next step on."""
        run.entered = self.steps
        self.runs[run.request.request_id] = run
        heapq.heappush(self._ends, (run.end, next(self._entries), run))
        self.context += run.context
        self._residues[self._residue(run)] += 1

    def leave(self, run: Run) -> None:
        """Take a run out and credit it with the tokens it has written."""
        del self.runs[run.request.request_id]
        self._residues[self._residue(run)] -= 1
        written = self.steps - run.entered
        self.context -= run.context + written
        run.generated += written
        run.entered = -1

    def growth(self, steps: int) -> int:
        """Return the new blocks that the runs need over the next steps."""
        size = len(self._residues)
        rounds, rest = divmod(steps, size)
        blocks = rounds * len(self.runs)
        for step in range(self.steps + 1, self.steps + rest + 1):
            blocks += self._residues[step % size]
        return blocks

    def jump(self, *, free_blocks: int) -> int:
        """Return how many steps can be taken at once: to the next end, or until blocks run out.

        One step always fits: the engine has made room for it.
        """
        while not self._is_true(*self._ends[0]):
            heapq.heappop(self._ends)
        steps = self._ends[0][0] - self.steps
        if self.growth(steps) <= free_blocks:
            return steps
        low, high = 1, steps
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.growth(middle) <= free_blocks else (low, middle - 1)
        return low

    def take(self, steps: int) -> None:
        """Take steps: every run writes a token in each."""
        self.steps += steps
        self.context += steps * len(self.runs)

    def ended(self) -> Iterator[Run]:
        """Take out and yield the runs that have written their last token."""
        while self._ends and self._ends[0][0] <= self.steps:
            entry = heapq.heappop(self._ends)
            if self._is_true(*entry):
                self.leave(entry[2])
                yield entry[2]

    @staticmethod
    def _is_true(end: int, _: int, run: Run) -> bool:
        """Say whether an entry of the heap still holds: its run may have been cancelled or preempted."""
        return not run.gone and run.entered >= 0 and run.end == end

    def _residue(self, run: Run) -> int:
        """Return at which step, modulo the block size, a run's next token needs a new block."""
        private = run.context - run.shared_tokens
        return (run.entered - private + 1) % len(self._residues)
