"""Where in which file a watch was, and which file that is now that logs may have been rotated."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from tocsin._common.errors import TocsinError

PRINT = 1024
"""Bytes at the beginning of a file, and before a place in it, by which it is known again."""

SURE = 1024
"""Bytes from which on two files that begin alike are the same one, written anew."""


PACKED = (".gz", ".bz2", ".xz", ".zst", ".Z", ".zip", ".lz4")
"""How names of compressed files end."""

OURS = (".tocsin", ".bad.jsonl", ".lock", ".html")
"""How names of files end that Tocsin writes beside a stream."""


class PlaceLostError(TocsinError):
    """Whether rows were lost, or which ones are new, cannot be known."""

    why = ""


def lost(why: str) -> PlaceLostError:
    """The error, with what can be done."""
    error = PlaceLostError(
        f"{why} Rows may have been lost, and which are new cannot be known. Give --reread to take in all that is there "
        "now, or --from-now (with --follow) for what comes from now on."
    )
    error.why = why
    return error


@dataclass(frozen=True)
class Place:
    """What was taken in of a stream: all of a file up to here, and all of those that had its name before.

    path: the stream's name.  offset, line: bytes and lines of the file.  rows: observations of the whole stream.
    header: the line that names the columns; None if there is none.  begun: whether that is known yet.
    head, tail: hashes of the file's first bytes, and of those before the offset.  known: how many bytes `head` is of;
    they may be more than were taken in.  whole: whether it ended there.
    For files that are not lines of text `offset` is their size, and `line` the rows taken, with bad ones.
    """

    path: str
    inode: int
    offset: int
    line: int
    rows: int
    header: str | None
    begun: bool
    head: str
    known: int
    tail: str
    whole: bool


def printed(data: bytes) -> str:
    """A hash."""
    return hashlib.sha256(data).hexdigest()[:32]


class Sibling(NamedTuple):
    """A file in the folder of a stream."""

    path: Path
    inode: int
    size: int
    written: int


class Folder:
    """The files that may have had a stream's name before: those whose names begin like it."""

    def __init__(self, path: str) -> None:
        self.path = Path(path).absolute()
        self.files = self._look()
        # A rotation renames several files: what is seen twice is no state in between.
        while (again := self._look()) != self.files:
            self.files = again

    def _look(self) -> list[Sibling]:
        stem, found = self.path.name.removesuffix(self.path.suffix), []
        with os.scandir(self.path.parent) as entries:
            for entry in entries:
                if entry.name.startswith(stem) and entry.is_file():
                    try:
                        seen = entry.stat()
                    except FileNotFoundError:
                        continue
                    found.append(Sibling(Path(entry.path), seen.st_ino, seen.st_size, seen.st_mtime_ns))
        return sorted(found)

    @property
    def own(self) -> Sibling | None:
        """The file that has the name now."""
        return next((file for file in self.files if file.path.name == self.path.name), None)

    def others(self) -> list[Sibling]:
        """The rest, latest first."""
        return sorted((file for file in self.files if file != self.own), key=lambda file: -file.written)

    def after(self, file: Sibling | None, written: int) -> list[Sibling] | None:
        """Files that took the name after this one, oldest first; None if some may be gone, or cannot be read.

        file: None if it has gone; it may be compressed.  written: when it was last.
        """
        number = _numbered(self.path.name)
        current = [self.own] if self.own is not None else []
        newer = [other for other in self.others() if other.written > written and self._rotated(other.path.name)]
        if file is None:
            return None if newer else current
        if file == self.own:
            return []
        name = _unpacked(file.path.name)
        unread = [_unpacked(other.path.name) for other in newer if other != file and other.path.suffix in PACKED]
        found = number.fullmatch(name)
        if found is not None:
            between = {int(own[1]): other for other in self.files if (own := number.fullmatch(other.path.name))}
            between[int(found[1])] = file
            numbers = [i for i in between if i < int(found[1])]
            first = min(between)  # some count from 0
            if sorted(numbers) != list(range(first, int(found[1]))) or first > 1:
                return None
            if any(int(own[1]) < first for other in unread if (own := number.fullmatch(other))):
                return None
            return [between[i] for i in sorted(numbers, reverse=True)] + current
        alike = re.compile(re.sub(r"\d+", lambda _: r"\d+", re.escape(name)))
        dated = [other for other in self.others() if alike.fullmatch(other.path.name) and other != file]
        later = [other for other in dated if (other.written, other.path.name) > (written, name)]
        if any(other > name for other in unread):
            return None
        return sorted(later, key=lambda other: (other.written, other.path.name)) + current

    def _rotated(self, name: str) -> bool:
        """Whether a file may have had the name: all that begins with it, or has a number before its ending."""
        stem, ending = self.path.name.removesuffix(self.path.suffix), re.escape(self.path.suffix)
        if name.startswith(self.path.name):
            return not name.endswith(OURS)
        return re.fullmatch(rf"{re.escape(stem)}[-_.]?\d[-_.:T\d]*{ending}(\.\w+)?", name) is not None


def _unpacked(name: str) -> str:
    """Of a compressed file, the name that it had before."""
    return next((name.removesuffix(ending) for ending in PACKED if name.endswith(ending)), name)


def _numbered(name: str) -> re.Pattern[str]:
    return re.compile(re.escape(name) + r"\.(\d{1,4})")


def holds(path: Path, place: Place) -> bool:
    """Whether a file still has what was taken in of it."""
    try:
        with FileIO(path) as file:
            if os.fstat(file.fileno()).st_size < max(place.offset, place.known):
                return False
            head = piece(file, 0, place.known)
            tail = piece(file, max(place.offset - PRINT, 0), min(PRINT, place.offset))
            return printed(head) == place.head and printed(tail) == place.tail
    except OSError:
        return False


def begins_alike(path: Path, place: Place) -> bool:
    """Whether a file has the beginning of the one that a place is in, though not the rest of what was read."""
    try:
        with FileIO(path) as file:
            head = piece(file, 0, place.known)
    except OSError:
        return False
    return 0 < place.known == len(head) and printed(head) == place.head


def packs(path: Path, head: bytes, size: int) -> bool:
    """Whether a file is one of this size that begins so, compressed."""
    try:
        if path.suffix != ".gz":
            return False
        with FileIO(path) as file:
            end = piece(file, max(os.fstat(file.fileno()).st_size - 4, 0), 4)
        with gzip.open(path) as unpacked:
            return end == (size % 2**32).to_bytes(4, "little") and unpacked.read(len(head)) == head
    except (OSError, EOFError, zlib.error):
        return False


def piece(file: FileIO, offset: int, size: int) -> bytes:
    """Bytes of a file; fewer at its end."""
    file.seek(offset)
    return file.read(size)


def found_again(place: Place, folder: Folder) -> Sibling | None:
    """The file that a place is in, under whatever name: by its number and content, or by its content alone."""
    own = folder.own
    candidates = [*([own] if own is not None else []), *folder.others()]
    same = [file for file in candidates if file.inode == place.inode and holds(file.path, place)]
    if same:
        return same[0]
    if max(place.offset, place.known) <= len((place.header or "").encode()):
        return None  # a header alone tells no file from the next
    return next((file for file in candidates if holds(file.path, place)), None)
