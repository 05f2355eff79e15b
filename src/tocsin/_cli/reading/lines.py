"""Lines of a text, and where each ends: what rows are made of."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

import typer

from tocsin._cli.cleaning import clean
from tocsin._common.errors import InputError

LONGEST = 1 << 24
"""Bytes that a line may have; a longer one is no row, and is not kept in memory."""


class BadRow(NamedTuple):
    """A row that cannot be taken in.

    line: its number in its file.  text: what stands there.  reason: why not.  mark: where it ends.
    """

    line: int
    text: str
    reason: InputError
    mark: object = None


OnBad = Callable[[BadRow], None]
"""What to do with such a row: raise, or return to go on without it."""


def tell_of_the_last(bad: BadRow) -> None:
    """Go on without a last line that never ended, and tell; end the reading for any other."""
    if not isinstance(bad.reason, UnfinishedError):
        raise bad.reason
    typer.echo(clean(f"tocsin: {bad.reason}"), err=True)


def refuse(bad: BadRow) -> None:
    """End the reading."""
    raise bad.reason


class Source:
    """Lines that are not blank, one by one.

    number: of the latest line, blank ones counted.  row: of rows before the first.  mark: where the latest line ends,
    for those who can go on from there.  named: whether the first line has the names of columns; None: see for yourself.
    """

    mark: object = None
    named: bool | None = None
    row = 0

    def __init__(self, name: str, lines: Iterable[str] = ()) -> None:
        self.name, self.number, self.text = name, 0, ""
        self._lines = iter(lines)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            line = self.next_line()
            if line.strip():
                self.text = line
                return line

    def next_line(self) -> str:
        """The next line, blank or not; counts it."""
        line = next(self._lines)
        self.number += 1
        return line


class StandardInput(Source):
    """Lines as they arrive.

    on_bad: what to do with a last line of a pipe that has no end, since whoever wrote it may have died over it, and
    with lines that are too long. A file has been written, and a JSON object or array that is whole shows that it is:
    their last lines need no end.
    """

    def __init__(self, name: str, on_bad: OnBad) -> None:
        super().__init__(name)
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("Standard input is closed; pipe rows into it, or name a file.")
        self._on_bad = on_bad
        self._bytes = sys.stdin.buffer
        self._regular = _is_regular(self._bytes)

    def next_line(self) -> str:
        line = self._bytes.readline(LONGEST)
        if not line:
            raise StopIteration
        self.number += 1
        if line.endswith(b"\n") or (len(line) < LONGEST and (self._regular or _is_whole(line))):
            return decoded(line, first=self.number == 1)
        if len(line) >= LONGEST:
            while (rest := self._bytes.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
            self._on_bad(too_long(self.name, self.number, line))
        else:
            remedy = " If it is whole, end it with a newline, or give the file itself and no pipe."
            self._on_bad(unfinished(self.name, self.number, line, remedy))
        return ""


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict | list)
    except (ValueError, RecursionError):
        return False


def _is_regular(file: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except OSError:  # not a file of the system's
        return False


def decoded(line: bytes, *, first: bool = False) -> str:
    """A line as text; the first of a file may begin with a byte order mark."""
    return line.decode("utf-8-sig" if first else "utf-8", errors="backslashreplace")


def too_long(name: str, number: int, line: bytes) -> BadRow:
    """Why a line is no row."""
    reason = f"{name}, line {number}, has more than {LONGEST >> 20} MiB and no end. A row must be shorter."
    return BadRow(number, _beginning(line), InputError(reason))


class UnfinishedError(InputError):
    """The last line has no end, so that what is missing of it is not known."""


def unfinished(name: str, number: int, line: bytes, remedy: str = "") -> BadRow:
    """Why a last line is no row."""
    reason = f"{name}, line {number}, {_beginning(line)[:40]!r}, never ended, and is not taken in.{remedy}"
    return BadRow(number, _beginning(line), UnfinishedError(reason))


def _beginning(line: bytes) -> str:
    return decoded(line[:1000])
