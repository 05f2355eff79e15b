"""Ctrl-C, SIGTERM and SIGHUP, taken between two pieces of work."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class Stopper:
    """Whether someone asked to stop. The question interrupts waiting for the next item, never work on one."""

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False

    def until_asked(self, items: Iterable[T]) -> Iterator[T]:
        """The items, up to the request to stop."""
        source = iter(items)
        while True:
            try:
                with self.waiting():
                    if self.asked:  # looked at only now: a request from here on interrupts
                        return
                    item = next(source)
            except (KeyboardInterrupt, StopIteration):
                return
            yield item

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What is done meanwhile is waiting: a request to stop interrupts it with KeyboardInterrupt."""
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False

    def ask(self, _number: int, _frame: FrameType | None) -> None:
        """Ask to stop; a signal handler."""
        self.asked = True
        if self._waiting:
            raise KeyboardInterrupt


@contextmanager
def stopper() -> Iterator[Stopper]:
    """A `Stopper` that listens to Ctrl-C, SIGTERM and SIGHUP until the block ends; nohup's wish is respected."""
    it = Stopper()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, it.ask) for number in numbers}
    try:
        yield it
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
