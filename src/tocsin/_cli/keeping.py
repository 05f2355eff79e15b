"""What a watch keeps in its detector's file: where it was in which streams, and alarms that are still to be told."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tocsin._cli.outbox import MOST as MOST_WAITING
from tocsin._cli.outbox import WAYS, Outbox
from tocsin._cli.places import PRINT, Place
from tocsin._cli.rows import Rows
from tocsin._cli.telling import Report
from tocsin._common.errors import InputError, StorageError
from tocsin._detector import storage
from tocsin._detector.base import content_of
from tocsin._detector.detector import Detector
from tocsin._detector.schema import Choice, Many, Maybe, Number, Record, Whole, must, plain, text, truth

MOST_PLACES = 16
"""Streams whose places are kept: the latest."""

EVERY = 10.0
"""Seconds between two saves of a stream that is followed, unless told otherwise."""

SHARE = 20
"""Times as long as a save takes it is until the next, if that is more: large detectors take long to write."""

KEY = "source"
"""Under which a file holds it, beside the detector, which knows nothing of it."""


def _written(value: object, at: str) -> None:
    """A text that a file can hold."""
    text(value, at)
    must(not re.search("[\ud800-\udfff]", str(value)), at, value, "a text of whole characters")


PLACE = Record(
    {
        "path": text,
        "inode": Whole(most=2**64),
        "offset": Whole(),
        "line": Whole(),
        "rows": Whole(),
        "header": Maybe(_written),
        "begun": truth,
        "head": text,
        "known": Whole(most=PRINT),
        "tail": text,
        "whole": truth,
    }
)


ANY_NUMBER = Number(-math.inf, math.inf, nan=True)

CHANNEL = Record(
    {
        "statistic": text,
        "window": Maybe(Whole()),
        "width": Maybe(ANY_NUMBER),
        "view": Maybe(text),
        "column": Maybe(text),
    },
    optional=frozenset({"view", "column"}),
)

ALARM = Record(
    {
        "event": Choice(("alarm",)),
        "id": text,
        "detector": text,
        "stream": text,
        "timestamp": text,
        "row": Whole(),
        "line": Maybe(Whole()),
        "when": Maybe(text),
        "kept": plain,
        "run_length": Whole(),
        "statistic": ANY_NUMBER,
        "threshold": ANY_NUMBER,
        "rarity": Maybe(ANY_NUMBER),
        "channel": Maybe(CHANNEL),
        "text": text,
        "explanation": plain,
    },
    optional=frozenset({"explanation", "line", "when", "kept"}),
)
"""What `Report.alarm` makes. It is told as it is."""

SOURCE = Record(
    {
        "places": Many(PLACE, most=MOST_PLACES),
        "waiting": Many(Record({"alarm": ALARM, "ways": Many(Choice(WAYS), distinct=True)}), most=MOST_WAITING),
    }
)


class Kept:
    """Read from a detector's file, and written back with the detector, in one piece."""

    def __init__(self, file: Path) -> None:
        self._file = file
        content = storage.read(file, Detector.__name__)
        found: dict[str, Any] = content.part(KEY, SOURCE) if KEY in content else {}
        self._places = [Place(**parts) for parts in found.get("places", ())]
        self.waiting: list[Any] = found.get("waiting", [])

    def place_of(self, stream: str) -> Place | None:
        """Where a watch of this stream was."""
        name = str(Path(stream).absolute())
        return next((place for place in self._places if place.path == name), None)

    def forget(self, stream: str) -> None:
        """That this stream was watched: it was not."""
        name = str(Path(stream).absolute())
        self._places = [place for place in self._places if place.path != name]

    def write(self, detector: Detector, place: Place | None, outbox: Outbox) -> None:
        """All of it, whole or not at all."""
        if place is not None:
            others = [other for other in self._places if other.path != place.path]
            self._places = [*others, place][-MOST_PLACES:]
        content = {"places": [asdict(own) for own in self._places], "waiting": outbox.parts()}
        storage.write(self._file, {**content_of(detector), KEY: content})


class Keeper:
    """Writes what a watch keeps, as it is now.

    every: rows between two saves on the way; None for some time instead.
    """

    def __init__(self, kept: Kept, detector: Detector, rows: Rows, report: Report, every: int | None) -> None:
        self._kept, self._detector, self._rows, self._report, self._every = kept, detector, rows, report, every
        self._tried, self._next = 0, 0.0

    def keep(self) -> None:
        """Write it."""
        self._tried, began = self._report.rows, time.monotonic()
        try:
            self._kept.write(self._detector, self._rows.place(self._tried), self._report.outbox)
        finally:
            now = time.monotonic()
            self._next = now + max(EVERY, SHARE * (now - began))

    def keep_if_due(self) -> None:
        """After so many rows or seconds; and after the first row, by which a file is known from others better."""
        taken = self._report.rows
        due = time.monotonic() >= self._next if self._every is None else taken - self._tried >= self._every
        if due or (taken and not self._tried and self._rows.grows):
            self.try_to_keep()

    def undo(self) -> None:
        """Write it without a place in a stream of which nothing was seen."""
        self._rows.mark = None
        self._kept.forget(self._rows.stream)
        self.try_to_keep()

    def try_to_keep(self) -> None:
        """The same on the way: the watch goes on without, and tells."""
        try:
            self.keep()
        except StorageError as error:
            self._report.tell(f"tocsin: The state is not saved, and is tried again: {error}")


def _has_the_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Refuse if another watch keeps its state in this file: one of them would undo what the other wrote."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    target = file.resolve()
    path = target.with_name(f".{target.name}.lock")
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise InputError(
                f"Cannot make {path}, by which one watch at a time keeps its state in {file}: "
                f"{error.strerror or error}. If it is a link or a folder, remove it; else put the file into a folder "
                "that may be written to."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _has_the_name(descriptor, path):
                break
        except BlockingIOError:
            os.close(descriptor)
            raise InputError(
                f"Another watch keeps its state in {file}, and each would undo what the other wrote. Wait for its end, "
                "leave --save-state out, or give this one a copy of the file."
            ) from None
        os.close(descriptor)  # whoever had it has just removed it
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)
