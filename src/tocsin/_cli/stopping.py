"""Ctrl-C, SIGTERM and SIGHUP, taken between two pieces of work."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

CAN_INSIST = hasattr(signal, "setitimer")
PATIENCE = 0.5
"""Seconds until a request that was not heard is made again."""


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
        self.insist()

    def insist(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """End the waiting, if a stop was asked for; again after a while, since what is raised may be lost.

        Python drops what is raised in a destructor, say, and the waiting would go on.
        """
        if self.asked and self._waiting:
            if CAN_INSIST:
                signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            raise KeyboardInterrupt


@contextmanager
def stopper() -> Iterator[Stopper]:
    """A `Stopper` that listens to Ctrl-C, SIGTERM and SIGHUP until the block ends; nohup's wish is respected."""
    it = Stopper()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, it.ask) for number in numbers}
    if CAN_INSIST:
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, it.insist)
    try:
        yield it
    finally:
        if CAN_INSIST:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
