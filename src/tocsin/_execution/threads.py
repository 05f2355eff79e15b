"""How independent pieces of work are run: in order, on the threads of this machine (or, in `cluster`, on others)."""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_LIMIT: ContextVar[int | None] = ContextVar("most threads", default=None)
_ALONE = threading.RLock()


def available_cores() -> list[int]:
    """The cores that this process may use, which containers and batch systems limit."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Executor(Protocol):
    """Maps a function over items; results come in the items' order, so that the number of workers changes nothing."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]: ...


class Threads:
    """The hot functions release the GIL, so threads suffice. Only a few results wait at any time."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or _LIMIT.get() or len(available_cores())

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        if self.workers == 1:
            yield from map(function, items)
            return
        source = iter(items)
        with ThreadPoolExecutor(self.workers) as pool:
            waiting = [pool.submit(function, item) for item in islice(source, 2 * self.workers)]
            try:
                while waiting:
                    done = waiting.pop(0)
                    result = done.result()
                    waiting.extend(pool.submit(function, item) for item in islice(source, 1))
                    yield result
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Executors that are made in here, and not told how many threads to use, use one: others use the other cores."""
    before = _LIMIT.set(1)
    try:
        yield
    finally:
        _LIMIT.reset(before)


def undisturbed(work: Callable[[], R]) -> R:
    """Do all of it, or nothing: Ctrl-C interrupts the main thread alone, so another does the work, and this one waits.

    What interrupts the waiting is heard when the work is done.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    claim, done = [work], threading.Event()
    results: list[R] = []
    errors: list[BaseException] = []

    def other() -> None:
        try:
            if _claimed(claim):
                results.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    try:
        _thread.start_new_thread(other, ())
        done.wait()
    except BaseException:
        if not _claimed(claim):
            done.wait()
        raise
    if errors:
        raise errors[0]
    return results[0]


def _claimed(claim: list[Any]) -> bool:
    """Whether the caller is the first to ask."""
    try:
        claim.pop()
    except IndexError:
        return False
    return True


@dataclass(frozen=True)
class OneAtATime(Generic[T, R]):
    """A function that may not be made for threads: in each process, one call of such a function after the other."""

    function: Callable[[T], R]

    def __call__(self, item: T) -> R:
        with _ALONE:
            return self.function(item)
