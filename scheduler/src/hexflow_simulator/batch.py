"""What decodes in a modelled engine, so kept that no step touches each run.

A run that enters at step ``s`` with ``r`` tokens to go ends at step ``s + r``: the head of a heap says how
far to jump. Which steps need a new block is known by residues modulo the block size.
"""

import heapq

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
        self._entries = 0
        self._residues = [0] * block_tokens

    def __len__(self) -> int:
        return len(self.runs)

    def enter(self, run: Run) -> None:
        """Let a run decode from the next step on."""
        run.entered = self.steps
        self.runs[run.request.request_id] = run
        self._entries += 1
        heapq.heappush(self._ends, (run.end, self._entries, run))
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
        residues = self._residues
        size = len(residues)
        rounds = steps // size
        blocks = rounds * len(self.runs)
        begin = (self.steps + 1) % size
        end = begin + steps - rounds * size
        for place in range(begin, min(end, size)):
            blocks += residues[place]
        for place in range(end - size):
            blocks += residues[place]
        return blocks

    def remaining(self) -> int:
        """Return the steps to the next end; there is one."""
        ends = self._ends
        while not self._holds(ends[0]):
            heapq.heappop(ends)
        return ends[0][0] - self.steps

    def jump(self, *, free_blocks: int) -> int:
        """Return how many steps can be taken at once: to the next end, or until blocks run out.

        One step always fits: the engine has made room for it.
        """
        steps = self.remaining()
        most = (steps // len(self._residues) + 1) * len(self.runs)
        if most <= free_blocks or self.growth(steps) <= free_blocks:
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

    def ended(self) -> list[Run]:
        """Take out and return the runs that have written their last token."""
        runs = []
        ends = self._ends
        while ends and ends[0][0] <= self.steps:
            entry = heapq.heappop(ends)
            if self._holds(entry):
                self.leave(entry[2])
                runs.append(entry[2])
        return runs

    def _holds(self, entry: tuple[int, int, Run]) -> bool:
        """Say whether an entry of the heap still holds: its run may have been cancelled or preempted."""
        run = entry[2]
        return not run.gone and run.entered >= 0 and run.end == entry[0]

    def _residue(self, run: Run) -> int:
        """Return at which step, modulo the block size, a run's next token needs a new block."""
        private = run.context - run.shared_tokens
        return (run.entered - private + 1) % len(self._residues)
