"""Rows that cannot be taken in: they end the watch, are left out, or are kept in a file of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tocsin._cli.ledger import Ledger
from tocsin._cli.opened import Mark
from tocsin._cli.places import printed
from tocsin._cli.reading.lines import BadRow, UnfinishedError
from tocsin._cli.spelling import spelled
from tocsin._common.errors import InputError

WORDS = ("stop", "skip")
"""What can be done with them, besides keeping them."""

MOST_IN_A_ROW = 100
"""So many without a good one between them end the watch: the stream is not what the detector was made for."""

LONGEST_TEXT = 1000
"""Characters that are kept of such a row."""


class BadRows:
    """What is done with rows that are none.

    policy: 'stop', 'skip' or the name of a file.  tell: where a note goes at the first.
    """

    def __init__(self, policy: str, stream: str, tell: Callable[[str], None]) -> None:
        self._policy, self._stream, self._tell = policy, stream, tell
        self._ledger: Ledger | None = None
        self._in_a_row = 0
        self.count = 0

    @property
    def stops(self) -> bool:
        """Whether the first one ends the watch."""
        return self._policy == "stop"

    @property
    def file(self) -> str | None:
        """Where they are kept."""
        return None if self._policy in WORDS else self._policy

    def __call__(self, bad: BadRow) -> None:
        why = bad.reason.told(spelled)
        if self.stops:
            if not isinstance(bad.reason, UnfinishedError):
                raise bad.reason
            self._tell(f"tocsin: {why}")
        if self.file is not None:
            self._keep(bad, why)
        elif not self.count and self._policy == "skip":
            self._tell(f"tocsin: A row is left out, and so will others be (--bad-rows skip): {why}")
        self.count += 1
        self._in_a_row += 1
        if self._in_a_row >= MOST_IN_A_ROW:
            raise InputError(
                f"{MOST_IN_A_ROW} rows in a row could not be taken in: this is not a stream that the detector was made "
                f"for. The last: {why}"
            )

    def good(self) -> None:
        """A row was taken in."""
        self._in_a_row = 0

    def open(self) -> None:
        """Make the file, if there is to be one: what cannot be kept is told before the first bad row."""
        if self.file is not None:
            self._opened()

    def close(self) -> None:
        """Let the file go."""
        if self._ledger is not None:
            self._ledger.close()

    def _opened(self) -> Ledger:
        if self._ledger is None:
            self._ledger = Ledger(Path(self._policy), "--bad-rows", once=True)
        return self._ledger

    def _keep(self, bad: BadRow, why: str) -> None:
        try:
            ledger = self._opened()
        except InputError as error:
            raise InputError(f"{error} It is for rows like this: {why}") from error
        if not self.count:
            self._tell(f"tocsin: A row could not be taken in; it is kept in {self._policy}, as others will be.")
        inode = bad.mark.inode if isinstance(bad.mark, Mark) else 0
        text = bad.text.rstrip("\r\n")[:LONGEST_TEXT]
        own = printed(f"{self._stream} {inode} {bad.line} {text}".encode())[:16]
        facts: dict[str, object] = {"stream": self._stream, "line": bad.line, "reason": why, "text": text}
        try:
            ledger.add({"event": "bad row", "id": own, **facts})
        except OSError as error:
            raise InputError(f"A bad row cannot be kept in {self._policy}: {error.strerror or error}. {why}") from error
