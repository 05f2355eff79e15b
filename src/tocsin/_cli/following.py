"""Lines of a text file, to its end or as they are written to it, from its beginning or from where a watch was.

A line counts once its newline is there. When another file has the name (a log that was rotated), the rest of the old
one comes first, and then every file that had the name in between; a header that they repeat is left out. A file that
was cut back is known by its copy, if there is one. Where rows may have been lost unseen, it stops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from tocsin._cli.opened import CHUNK, CutError, Mark, Opened, unended
from tocsin._cli.places import (
    PRINT,
    SURE,
    Folder,
    Place,
    PlaceLostError,
    Sibling,
    begins_alike,
    found_again,
    holds,
    lost,
    packs,
    printed,
)
from tocsin._cli.reading.lines import LONGEST, OnBad, Source, decoded, refuse, too_long, unfinished
from tocsin._cli.reading.text import has_names
from tocsin._common.errors import InputError

POLL = 0.2
"""Seconds between looks at a file that has not grown."""

GLANCE = 1.0
"""Seconds after which it is looked whether a file still has its name, although not all of its lines are read."""

AWAY = 5.0
"""Seconds without such a look in which a file may have been rotated more than once."""

DOUBTS = 5
"""Looks at a folder in which a file seems to be missing, before it is: it may be on its way to another name."""


class Followed(Source):
    """The lines of a file and, one after the other, of those that take its name.

    place: where to go on.  waits: whether there is more to come at the end.  as_json: whether no line names columns.
    from_now: leave out the lines that the file has already, but for a header, unless there is a place to go on from.
    on_bad: what to do with lines that are no rows.  tell: where notes go.
    """

    def __init__(
        self,
        path: str,
        *,
        place: Place | None = None,
        waits: bool = True,
        as_json: bool = False,
        from_now: bool = False,
        on_bad: OnBad = refuse,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(path)
        self._waits, self._as_json = waits, as_json
        self._on_bad, self._tell = on_bad, tell
        self._header: str | None = None
        self._known = False
        self._doubts = 0
        self._looked = time.monotonic()
        self._file = self._begin(place, from_now)
        self.mark = self._file.mark_here()
        self._lines = self._all()

    def place(self, mark: object, rows: int, whole: bool = False) -> Place | None:
        """A place for a later watch; `whole` if all that there is was taken in."""
        if not isinstance(mark, Mark):
            return None
        tail = mark.window[: mark.offset - mark.base][-PRINT:]
        name = str(Path(self.name).absolute())
        return Place(
            name,
            mark.inode,
            mark.offset,
            mark.line,
            rows,
            self._header,
            self._known,
            printed(mark.head),
            len(mark.head),
            printed(tail),
            whole,
        )

    def next_line(self) -> str:
        if time.monotonic() - self._looked > GLANCE:
            self._has_the_name(self._file)
        return next(self._lines)

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    # Which file

    def _open(self, path: Path, offset: int = 0, line: int = 0) -> Opened:
        try:
            if not path.is_file() and path.exists():
                wanted = "that can grow. Give '-' and pipe its lines in" if self._waits else "of rows"
                raise InputError(f"Cannot read {path}: it is not a file {wanted}.")
            return Opened(path, offset, line)
        except FileNotFoundError as error:
            wanted = f"There is no file {path} to follow; it must be there when the watch begins."
            raise InputError(wanted if self._waits else f"Cannot read {path}: No such file or directory.") from error
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error

    def _begin(self, place: Place | None, from_now: bool) -> Opened:
        if place is not None:
            try:
                return self._go_on(place)
            except PlaceLostError as error:
                if not from_now:
                    raise
                self._tell(f"{error.why} Rows may have been lost, and what is there now is left out (--from-now).")
        file = self._open(Path(self.name))
        while from_now:
            try:
                self._leave_out(file)
                break
            except CutError:  # just now
                file.close()
                file = self._open(Path(self.name))
        return file

    def _leave_out(self, file: Opened) -> None:
        """The whole lines that a file has. The first counts for its names."""
        end, count = file.end_of_lines()
        while not file.begun and file.offset < end and (fresh := file.read()):
            for _ in self._whole_lines(file, fresh):
                if file.begun:
                    break
        if file.begun:
            file.jump(end, count)

    def _go_on(self, place: Place) -> Opened:
        folder = Folder(self.name)
        file = found_again(place, folder)
        if file is None:
            if self._waits or not place.whole or folder.own is None or begins_alike(folder.own.path, place):
                raise lost(
                    f"{self.name} is no longer the file that was watched up to observation {place.rows:,}, or was cut "
                    "back, and neither that file nor a copy of it is beside it."
                )
            return self._open(Path(self.name))
        if not place.offset:
            return self._open(file.path)
        if not place.begun:
            raise lost(f"The names of columns in {self.name} span several lines.")
        opened = self._open(file.path, place.offset, place.line)
        if opened.torn_since:
            opened.close()
            raise unended(place.line)
        self._known, self._header = True, place.header
        self.named, self.row = place.header is not None, place.rows
        return opened

    def _next_file(self, file: Opened) -> Opened | None:
        """The one that took the name after this; None while this is the latest."""
        if self._has_the_name(file):
            return None
        folder, here, away = Folder(self.name), self._here(file), time.monotonic() - self._looked
        own, others = folder.own, folder.others()
        mine = next((other for other in folder.files if other.inode == file.inode), None)
        if mine is None and file.position >= SURE:
            if own is not None and holds(own.path, here):
                return self._open(own.path, file.offset, file.line)  # the same, written anew
            mine = next((other for other in others if other.size == file.size and holds(other.path, here)), None)
        if mine is None:
            mine = next((other for other in others if packs(other.path, file.head, file.size)), None)
        after = folder.after(mine, file.written)
        if after is None:
            self._doubts += 1
            if self._doubts <= DOUBTS:
                time.sleep(POLL)
                return self._next_file(file)
            raise lost(
                f"{self.name} was rotated more than once, and one that had its name meanwhile is compressed or gone."
            )
        if mine is None and away > AWAY:
            raise lost(
                f"{self.name} was not looked at for {away:.0f} s, and the file that had its name is no longer beside "
                "it: others may have had it in between."
            )
        self._doubts = 0
        if not after:
            return None
        first = after[0]
        try:
            following = self._open(first.path)
        except InputError:
            return None  # renamed just now; the next look finds it
        # As long as the new file has no line, whoever writes may still have the old one.
        if following.inode != first.inode or (self._waits and first == own and not following.end_of_lines()[0]):
            following.close()
            return None
        return following

    def _has_the_name(self, file: Opened) -> bool:
        """Whether this is the latest, or none has taken its name yet."""
        try:
            has = Path(self.name).stat().st_ino == file.inode
        except FileNotFoundError:
            has = True
        if has:
            self._looked = time.monotonic()
        return has

    def _here(self, file: Opened) -> Place:
        head, tail = printed(file.head), printed(file.before)
        return Place(self.name, file.inode, file.position, 0, 0, self._header, True, head, len(file.head), tail, False)

    def _after_cut(self, file: Opened) -> Opened:
        """A copy of what the file was, or the file from its beginning."""
        folder = Folder(self.name)
        here = self._here(file)
        if here.offset > len((self._header or "").encode()):
            for other in folder.others():
                if holds(other.path, here):
                    return self._copy(other, file)
        if self._has_rows(file):
            raise lost(f"{self.name} was cut back and has grown again between two looks, and there is no copy of it.")
        self._tell(
            f"{self.name} was cut back, and there is no copy of it beside it: rows written to it in the last "
            f"{POLL:g} s before that were not seen. It is read from its beginning."
        )
        return self._open(Path(self.name))

    def _has_rows(self, file: Opened) -> bool:
        """Whether there is more in a file than a header."""
        whole, end, _ = file.beginning(CHUNK).rpartition(b"\n")
        found = decoded(whole, first=True).strip()
        return bool(end) and found not in ("", (self._header or "").strip())

    def _copy(self, other: Sibling, file: Opened) -> Opened:
        copy = self._open(other.path, file.position, file.line)
        copy.offset, copy.rest, copy.skipped, copy.begun = file.offset, file.rest, file.skipped, file.begun
        copy.torn = file.torn
        return copy

    # Its lines

    def _all(self) -> Iterator[str]:
        if self._header is not None:
            yield self._header
        while True:
            file = self._file
            try:
                following = yield from self._until_replaced(file)
            except CutError:
                following = self._after_cut(file)
            if following is None:
                return
            if not following.begun and file.rest.strip():
                self._on_bad(unfinished(self.name, file.line + 1, bytes(file.rest)))
            file.close()
            self._file, self._looked = following, time.monotonic()

    def _until_replaced(self, file: Opened) -> Generator[str, None, Opened | None]:
        """The lines of one file; at its end the file that comes after it, if there is one."""
        following: Opened | None = None
        while True:
            fresh = file.read()
            if fresh:
                yield from self._whole_lines(file, fresh)
            elif following is not None:
                return following
            else:
                # What was written before the file was replaced, and after the last look, is read first.
                following = self._next_file(file)
                if following is None and not self._waits:
                    yield from self._last_lines(file)
                    return None
                if following is None:
                    time.sleep(POLL)

    def _whole_lines(self, file: Opened, fresh: bytes) -> Iterator[str]:
        end = fresh.rfind(b"\n") + 1
        if not end:
            file.rest += fresh
            if len(file.rest) > LONGEST:
                file.skipped += len(file.rest) - PRINT
                del file.rest[PRINT:]
            return
        whole, file.rest = bytes(file.rest + fresh[:end]), bytearray(fresh[end:])
        for line in _split(whole) if self._waits else whole.splitlines(keepends=True):
            text = self._ended(file, line)
            if text is not None:
                yield text

    def _last_lines(self, file: Opened) -> Iterator[str]:
        """What has no newline, at the end of a file that is not waited for."""
        rest, file.rest = bytes(file.rest), bytearray()
        for line in rest.splitlines(keepends=True):
            text = self._ended(file, line)
            if text is not None:
                yield text

    def _ended(self, file: Opened, line: bytes) -> str | None:
        """A line's text, if it is to be handed out; and where it ended."""
        too_much, file.skipped = file.skipped, 0
        file.offset += len(line) + too_much
        file.line += 1
        self.number = file.line
        self.mark = file.mark_read()
        if too_much:
            self._on_bad(too_long(self.name, file.line, line))
            return None
        text = decoded(line, first=file.line == 1)
        if file.begun or not text.strip():
            return text
        file.begun = True
        if self._known:
            return None if self._repeats_header(text) else text
        spans_lines = not self._waits and text.count('"') % 2
        self._known = not spans_lines
        self.named = None if spans_lines else not self._as_json and has_names(text)
        self._header = text if self.named else None
        return text

    def _repeats_header(self, text: str) -> bool:
        """Whether a first line is the header again. It is a row where there was none, or where there are no names."""
        if self._header is None or self._as_json:
            return False
        if text.strip() == self._header.strip():
            return True
        if not has_names(text):
            return False
        raise InputError(
            f"{self.name} was replaced by a file that begins with {text.strip()[:200]!r}, where the one before had the "
            f"header {self._header.strip()[:200]!r}: rows can be followed only while columns stay the same. Start the "
            "watch anew if they are the same under other names."
        )


def _split(whole: bytes) -> list[bytes]:
    return [line + b"\n" for line in whole.split(b"\n")[:-1]]
