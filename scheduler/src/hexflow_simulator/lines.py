"""A text file line by line, whatever is in it: bounded memory, and complaints that name file and line.

A byte-order mark at the start and either kind of line end are taken as they come. Empty lines are passed over.
"""

from collections.abc import Iterator
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from hexflow_simulator.complaint import InvalidTrace, Where

LONGEST_LINE = 32 * 1024 * 1024
"""Bytes of a line; a query of ten thousand calls has some two million."""
_BOM = b"\xef\xbb\xbf"
_OTHERS = {
    b"\xff\xfe": ("UTF-16 text", "save the file as UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "save the file as UTF-8"),
    b"\x1f\x8b": ("a file packed with gzip", "unpack it first (gunzip)"),
    b"BZh91AY&SY": ("a file packed with bzip2", "unpack it first (bunzip2)"),
    b"\xfd7zXZ": ("a file packed with xz", "unpack it first (unxz)"),
    b"\x28\xb5\x2f\xfd": ("a file packed with zstd", "unpack it first (unzstd)"),
    b"PK\x03\x04": ("a zip or a spreadsheet", "unpack it, or save the sheet as CSV"),
    b"PAR1": ("a Parquet file", "export it as CSV"),
}
"""What a file that is no text begins with, what it is then, and what to do."""


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and bytes of each line that is not empty, without its end.

    Raises InvalidTrace where the file cannot be read, is empty, or has a line that nobody would write.
    """
    number, some = 0, False
    try:
        _refuse_what_is_no_file(path)
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
                    line = _checked(line, Where(str(path), 1))
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
                "save the file as UTF-8",
            ) from error
        if "\0" in text:
            raise InvalidTrace(
                Where(str(path), number), "a NUL byte", "give a text file; this looks like a binary one"
            )
        yield number, text


def _refuse_what_is_no_file(path: Path) -> None:
    mode = path.stat().st_mode
    if S_ISDIR(mode):
        raise InvalidTrace(Where(str(path)), "a folder", "give the path of a file in it")
    if not S_ISREG(mode):
        raise InvalidTrace(
            Where(str(path)),
            "a pipe or a device",
            "write it into a file first, since it is read more than once",
        )


def _checked(line: bytes, where: Where) -> bytes:
    """Return the first line without its byte-order mark."""
    for beginning, (what, remedy) in _OTHERS.items():
        if line.startswith(beginning):
            raise InvalidTrace(where, what, remedy)
    if b"\r" in line.rstrip(b"\r\n"):
        raise InvalidTrace(where, "lines that end with CR alone", "save the file with LF or CRLF")
    return line.removeprefix(_BOM)
