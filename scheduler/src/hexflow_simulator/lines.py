"""A text file line by line, whatever is in it: bounded memory, and complaints that name file and line.

A byte-order mark at the start and either kind of line end are taken as they come. Empty lines are passed over.
"""

from collections.abc import Iterator
from pathlib import Path

from hexflow_simulator.complaint import InvalidTrace, Where

LONGEST_LINE = 32 * 1024 * 1024
"""Bytes of a line; a query of ten thousand calls has some two million."""
_BOM = b"\xef\xbb\xbf"


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and bytes of each line that is not empty, without its end.

    Raises InvalidTrace where the file cannot be read, is empty, or has a line that nobody would write.
    """
    number, some = 0, False
    try:
        with path.open("rb") as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise InvalidTrace(
                        Where(str(path), number),
                        f"a line of more than {LONGEST_LINE // 1024**2} MiB",
                        "give a text file with one record a line",
                    )
                if number == 1:
                    line = line.removeprefix(_BOM)
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                        raise InvalidTrace(Where(str(path), 1), "UTF-16 text", "save the file as UTF-8")
                line = line.rstrip(b"\r\n")
                if line.strip():
                    some = True
                    yield number, line
    except OSError as error:
        raise InvalidTrace(
            Where(str(path)), f"cannot be read ({error.strerror})", "give the path of a file that can"
        ) from error
    if not some:
        raise InvalidTrace(Where(str(path)), "an empty file", "give one with at least one record")


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not empty; raises InvalidTrace for bytes that are no UTF-8."""
    for number, line in numbered_lines(path):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidTrace(
                Where(str(path), number),
                f"bytes that are no UTF-8 text (0x{error.object[error.start]:02x})",
                "give a text file; a compressed one must be unpacked first",
            ) from error
        if "\0" in text:
            raise InvalidTrace(
                Where(str(path), number), "a NUL byte", "give a text file; this looks like a binary one"
            )
        yield number, text
