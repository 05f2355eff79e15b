"""Lines of a text file as they are written to it, as `tail -F` shows them.

A line counts once its newline is there. A file that was cut back, or replaced by another of its name (a log that was
rotated), is read from its beginning; the header that it then repeats is left out.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from tocsin._common.errors import InputError

POLL = 0.2
"""Seconds between looks at a file that has not grown."""

CHUNK = 1 << 16


def follow(path: str, *, from_now: bool = False) -> Iterator[str]:
    """Complete lines of the file, without end: the iterator waits for more.

    from_now: leave out the lines that the file has already, but for a header.
    """
    try:
        _open(path).close()  # a name that is wrong is told before any waiting
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path} to follow; it must be there when the watch begins.") from error
    return _lines(path, from_now)


def _lines(path: str, from_now: bool) -> Iterator[str]:
    file = _open(path)
    header: bytes | None = None
    replacement = False
    while True:
        with file:
            begin = _end_of_lines(file) if from_now else 0
            first = _wait_for_first_line(path, file)
            if first is not None:
                if replacement:
                    begin = file.tell() if _repeats(path, header, first) else 0
                elif _has_a_word(first):
                    header, begin = first, max(begin, file.tell())
                    yield _text(first)
                file.seek(begin)
                for line in _lines_until_replaced(path, file):
                    yield _text(line)
                replacement = True
        from_now = False
        file = _reopen(path)


def _open(path: str) -> FileIO:
    try:
        if not Path(path).is_file() and Path(path).exists():
            raise InputError(f"Cannot follow {path}: it is not a file that can grow. Give '-' and pipe its lines in.")
        return FileIO(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def _reopen(path: str) -> FileIO:
    """The file that bears the name now; a rotation may leave the name free for a while."""
    while True:
        try:
            return _open(path)
        except FileNotFoundError:
            time.sleep(POLL)


def _wait_for_first_line(path: str, file: FileIO) -> bytes | None:
    """The first complete line that is not blank; the file stands after it. None if it was replaced before it came."""
    while True:
        file.seek(0)
        line = next((line for line in file if line.strip()), b"")
        if line.endswith(b"\n"):
            return line
        if _replaced(path, file):
            return None
        time.sleep(POLL)


def _lines_until_replaced(path: str, file: FileIO) -> Iterator[bytes]:
    rest, ended = b"", False
    while True:
        piece = file.read(CHUNK)
        if piece:
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
        elif ended:
            return
        else:
            # Replaced: what was written before that, and after the last look, is read first.
            ended = _replaced(path, file)
            if not ended:
                time.sleep(POLL)


def _replaced(path: str, file: FileIO) -> bool:
    """Whether the file was cut back, or another one bears its name now."""
    own = os.fstat(file.fileno())
    try:
        return own.st_size < file.tell() or not os.path.samestat(own, Path(path).stat())
    except FileNotFoundError:
        return False


def _repeats(path: str, header: bytes | None, first: bytes) -> bool:
    """Whether the first line is the header again. It is a row where there was none, or where there are only numbers."""
    if header is None or not _has_a_word(first):
        return False
    if _text(first).strip() == _text(header).strip():
        return True
    raise InputError(
        f"{path} was replaced by a file that begins with {_text(first).strip()[:200]!r}, where the one before had the "
        f"header {_text(header).strip()[:200]!r}: rows can be followed only while columns stay the same. Start the "
        "watch anew if they are the same under other names."
    )


def _has_a_word(line: bytes) -> bool:
    """Whether a line of CSV has a field that is neither a number nor empty; JSON has no header."""
    text = _text(line).strip()
    fields = [field.strip().strip('"') for field in re.split("[,;\t]", text)]
    return not text.startswith(("{", "[")) and any(field and not _is_number(field) for field in fields)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _end_of_lines(file: FileIO) -> int:
    """Where the last complete line ends."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(end - CHUNK, 0)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _text(line: bytes) -> str:
    return line.decode("utf-8-sig", errors="backslashreplace")
