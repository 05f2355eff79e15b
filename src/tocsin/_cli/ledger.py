"""A file of JSON lines that grows: alarms, and rows that could not be taken in."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path

from tocsin._common.errors import InputError

LOOKED_AT = 1 << 20
"""Bytes at the end of such a file in which lines are looked for that are there already."""


class Ledger:
    """Appends objects, each whole or not at all, to the file that has the name then: it may be removed or put aside.

    option: what asks for it, for a message.  once: leave out objects whose id is there already.
    """

    def __init__(self, file: Path, option: str, *, once: bool = False) -> None:
        self._file, self._once = file, once
        self._ids: set[object] = set()
        try:
            self._open()
        except OSError as error:
            raise InputError(f"Cannot write {option} {file}: {error.strerror or error}.") from error

    def _open(self) -> None:
        self._descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        if self._regular:
            self._look()

    def _has_the_name(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._file.stat())
        except FileNotFoundError:
            return False

    def _look(self) -> None:
        size = os.fstat(self._descriptor).st_size
        os.lseek(self._descriptor, max(size - LOOKED_AT, 0), os.SEEK_SET)
        end = os.read(self._descriptor, LOOKED_AT)
        for line in end.splitlines() if self._once else []:
            with suppress(ValueError, AttributeError):
                self._ids.add(json.loads(line).get("id"))
        self._ids.discard(None)
        self._begin = b"" if not end or end.endswith(b"\n") else b"\n"

    def add(self, facts: dict[str, object]) -> None:
        """Append an object, unless it is there; an OSError if that fails."""
        if facts.get("id") in self._ids:
            return
        if self._regular and not self._has_the_name():
            before = self._descriptor
            self._open()
            os.close(before)
        line = json.dumps(facts).encode() + b"\n"
        if self._regular:
            line = self._begin + line
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, line)
            if written < len(line):
                os.write(self._descriptor, line[written:])  # tells why
            if self._regular:
                os.fsync(self._descriptor)
        except OSError:
            if self._regular:
                os.ftruncate(self._descriptor, size)
            raise
        self._begin = b""
        self._ids.add(facts.get("id"))
        self._ids.discard(None)

    def close(self) -> None:
        """Let the file go."""
        os.close(self._descriptor)
