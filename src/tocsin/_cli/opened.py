"""A file that is read while others write to it."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from tocsin._cli.places import PRINT, PlaceLostError, lost, piece

CHUNK = 1 << 16


class Mark(NamedTuple):
    """Where a line ends, the file's first bytes, and the latest ones that were read then, from `base` on."""

    inode: int
    head: bytes
    offset: int
    line: int
    window: bytes
    base: int


class CutError(Exception):
    """The file no longer holds what was read of it."""


def unended(line: int) -> PlaceLostError:
    """Why the rows after a place are not known."""
    return lost(f"Line {line} was taken in when it was not finished, and it has been since.")


class Opened:
    """A file that is read.

    offset, line: where the latest line ended that was handed out.  position: how far it was read.  begun: whether its
    first line has been seen.  head, before: its first bytes, and the latest ones read.  rest: of a line without an end,
    and `skipped` bytes of it that are not kept.  window: what was read last, from `base` on.
    """

    def __init__(self, path: Path, offset: int = 0, line: int = 0) -> None:
        self._file = FileIO(path)
        self.inode = os.fstat(self._file.fileno()).st_ino
        self.head = piece(self._file, 0, min(PRINT, offset))
        self.before = piece(self._file, max(offset - PRINT, 0), min(PRINT, offset))
        self.offset = self.position = offset
        self.line, self.begun = line, offset > 0
        self.rest, self.skipped = bytearray(), 0
        self.window, self.base = b"", offset
        self.torn = bool(self.before) and self.before[-1:] not in (b"\n", b"\r")

    def read(self) -> bytes:
        """More of it; nothing at its end."""
        known = len(self.before)
        data = piece(self._file, self.position - known, known + CHUNK)
        if (
            self.size < self.position
            or data[:known] != self.before
            or piece(self._file, 0, len(self.head)) != self.head
        ):  # fmt: skip
            raise CutError
        fresh = data[known:]
        if self.torn and fresh and fresh[:1] not in (b"\n", b"\r"):
            raise unended(self.line)
        self.torn = self.torn and not fresh
        self.window, self.base = data, self.position - known
        self.head = (self.head + fresh)[:PRINT]
        self.position += len(fresh)
        self.before = data[-PRINT:]
        return fresh

    @property
    def torn_since(self) -> bool:
        """Whether the line before the place has gone on since it was taken in."""
        return self.torn and piece(self._file, self.position, 1) not in (b"", b"\n", b"\r")

    def mark_read(self) -> Mark:
        """Where the latest line ended."""
        return Mark(self.inode, self.head, self.offset, self.line, self.window, self.base)

    def beginning(self, size: int) -> bytes:
        """Its first bytes, read or not."""
        return piece(self._file, 0, size)

    def mark_here(self) -> Mark:
        """Where it is before any line is read. What is there already tells it from files that come after it."""
        head = self.head or self.beginning(PRINT)
        if not self.head and not head.partition(b"\n")[2].strip():
            head = b""  # perhaps a header, as any other file may have
        return Mark(self.inode, head, self.offset, self.line, self.before, self.offset - len(self.before))

    @property
    def size(self) -> int:
        """In bytes, now."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def written(self) -> int:
        """When it was last written to."""
        return os.fstat(self._file.fileno()).st_mtime_ns

    def jump(self, offset: int, line: int) -> None:
        """Leave out what comes before."""
        self.offset = self.position = offset
        self.line, self.rest, self.skipped = line, bytearray(), 0
        self.before = piece(self._file, max(offset - PRINT, 0), min(PRINT, offset))
        self.head = piece(self._file, 0, min(PRINT, offset))

    def end_of_lines(self) -> tuple[int, int]:
        """Where the last complete line ends, and how many there are."""
        end = lines = position = 0
        while data := piece(self._file, position, CHUNK):
            lines += data.count(b"\n")
            end = position + data.rfind(b"\n") + 1 if b"\n" in data else end
            position += len(data)
        return end, lines

    def close(self) -> None:
        self._file.close()
