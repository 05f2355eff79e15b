"""The rows of a stream from where a watch was, and where in it they end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import FileIO
from pathlib import Path

from tocsin._cli import reading, streams
from tocsin._cli.bad_rows import BadRows
from tocsin._cli.following import Followed
from tocsin._cli.places import PRINT, Place, holds, lost, piece, printed
from tocsin._cli.reading import Block
from tocsin._cli.reading.lines import BadRow, Source, StandardInput
from tocsin._detector.detector import Detector


class Rows:
    """A stream that is watched: standard input, a file of lines that may grow, or any other file.

    stream: its name.  place: where a watch was in it.  before: rows that were taken in then.  mark: where the latest
    row ends that was taken in.  ended: whether there are no more.  grows: whether more are waited for.
    """

    def __init__(
        self,
        stream: str,
        place: Place | None,
        bad: BadRows,
        tell: Callable[[str], None],
        *,
        follow: bool,
        from_now: bool,
    ) -> None:
        self.stream, self._place, self._bad, self.grows = stream, place, bad, follow
        self.mark: object = None
        self.ended = False
        self._skipped = 0
        self._source: Source | None = None
        suffix = Path(stream).suffix.lower()
        if stream == reading.STANDARD_INPUT:
            self._source = StandardInput(reading.source_name(stream), self._on_bad)
        elif suffix in reading.GROWING:
            self._source = Followed(
                stream,
                place=place,
                waits=follow,
                as_json=suffix != ".csv",
                from_now=from_now,
                on_bad=self._on_bad,
                tell=lambda text: tell(f"tocsin: {text}"),
            )
        elif place is not None:
            self._skipped = _rows_to_skip(stream, place)
        if isinstance(self._source, Followed):
            self.mark = self._source.mark
        self._first, self._known = self.mark, place is not None
        self.before = self._source.row if self._source is not None else place.rows if place and self._skipped else 0
        if not self.before:
            self._place = None  # a place in another file of its name

    def blocks(self, detector: Detector, file: Path, columns: list[str] | None, keep: list[str]) -> Iterator[Block]:
        """The rows, in blocks as large as may be waited for."""
        one = self.grows or self.stream == reading.STANDARD_INPUT
        size = 1 if one else reading.BLOCK
        # Where bad rows do not end the watch, a quote too many must not take the rest of the file with it.
        lines = one or not self._bad.stops
        for block in streams.marked_blocks(
            detector, file, self.stream, columns, keep, size, self._source, self._on_bad, line_by_line=lines
        ):
            done = sum(self._was_taken(mark) for mark in block.marks) if self._skipped else 0
            if done < len(block.table):
                yield block.without(done)

    def place(self, rows: int) -> Place | None:
        """Where it is now, after so many rows of this watch; None if that cannot be told."""
        if isinstance(self._source, Followed):
            return self._source.place(self.mark, self.before + rows, self.ended)
        if isinstance(self.mark, int):
            return _place_of_file(self.stream, self.mark, self.before + rows, self.ended)
        return None if self._place is None else replace(self._place, whole=self.ended)

    @property
    def begun(self) -> bool:
        """Whether it was watched before, or any of it was seen, good or bad."""
        return self._known or self.mark != self._first

    def close(self) -> None:
        """Let the file go."""
        if isinstance(self._source, Followed):
            self._source.close()

    def _was_taken(self, mark: object) -> bool:
        return isinstance(mark, int) and mark <= self._skipped

    def _on_bad(self, bad: BadRow) -> None:
        if self._was_taken(bad.mark):
            return
        self._bad(bad)
        self.mark = bad.mark or self.mark


def _place_of_file(path: str, line: int, rows: int, whole: bool) -> Place:
    with FileIO(path) as file:
        found = os.fstat(file.fileno())
        head, tail = piece(file, 0, PRINT), piece(file, max(found.st_size - PRINT, 0), PRINT)
    name = str(Path(path).absolute())
    return Place(
        name, found.st_ino, found.st_size, line, rows, None, True, printed(head), len(head), printed(tail), whole
    )


def _rows_to_skip(path: str, place: Place) -> int:
    if Path(path).exists() and Path(path).stat().st_size == place.offset and holds(Path(path), place):
        return place.line
    if not place.whole:
        raise lost(f"{path} is not what it was when {place.rows:,} of its rows were watched, and the rest was not.")
    return 0  # another file, under the name of one that was watched to its end
