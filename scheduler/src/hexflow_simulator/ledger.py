"""A ledger of trials: a file to which each result is added as it comes, so that long work can be taken up again.

The first line says which code the results are from; results of other code are refused, not mixed.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from hexflow_simulator.trial import Trial, TrialResult

VERSION = 1


class LedgerError(Exception):
    """A file cannot be used as a ledger; the message says why and what to do."""


class Ledger:
    """Keep results by trial in a JSONL file. Use it as a context manager."""

    def __init__(self, path: Path, *, code: str) -> None:
        self.path = path
        self.code = code
        """Names the code that the results are from (a commit, a version)."""
        self._results: dict[str, TrialResult] = {}
        if path.suffix == ".gz":
            raise LedgerError(
                f"{path} is packed, and nothing can be added to it; unpack it, or name another file with --results"
            )
        if path.exists():
            self._read()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"version": VERSION, "code": code}) + "\n")
        self._file = path.open("a")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[TrialResult]:
        return iter(self._results.values())

    def __contains__(self, trial: Trial) -> bool:
        return trial.key in self._results

    def __getitem__(self, trial: Trial) -> TrialResult:
        return self._results[trial.key]

    @property
    def by_key(self) -> Mapping[str, TrialResult]:
        """All results by the key of their trial."""
        return MappingProxyType(self._results)

    def add(self, result: TrialResult) -> None:
        """Keep a result; it is on disk when this returns."""
        self._results[result.trial.key] = result
        self._file.write(json.dumps(result.to_data()) + "\n")
        self._file.flush()

    def _read(self) -> None:
        code, results = read_results(self.path)
        if code != self.code:
            raise LedgerError(
                f"{self.path} holds results of {code}, and this is {self.code}; name another file with --results, "
                "or delete that one, since results of different code cannot be compared"
            )
        self._results.update(results)
        whole = self.path.read_bytes()
        cut = whole.rpartition(b"\n")[2]
        if cut and _is_result(cut):  # all of it but its end is there
            self.path.write_bytes(whole + b"\n")
        elif cut:
            self.path.write_bytes(whole[: -len(cut)])


def _is_result(line: bytes) -> bool:
    try:
        TrialResult.from_data(json.loads(line))
    except (ValueError, KeyError, TypeError):
        return False
    return True


def read_results(path: Path) -> tuple[str, dict[str, TrialResult]]:
    """Return the code that results are from, and the results by key; the file may be packed (``.gz``).

    A last line that was cut short is passed over: its trial is run again. Raises LedgerError for any other file.
    """
    try:
        packed = path.read_bytes()
        lines = (gzip.decompress(packed) if path.suffix == ".gz" else packed).split(b"\n")
        header = json.loads(lines[0])
        version, code = header["version"], str(header["code"])
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
        raise LedgerError(f"{path} is no file of benchmark results; name another with --results") from None
    if version != VERSION:
        raise LedgerError(f"{path} holds results of another format ({version}); name another with --results")
    results: dict[str, TrialResult] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        try:
            result = TrialResult.from_data(json.loads(line))
        except (ValueError, KeyError, TypeError):
            if number == len(lines):
                break
            raise LedgerError(f"{path}:{number} is no result of a trial; delete that line") from None
        results[result.trial.key] = result
    return code, results
