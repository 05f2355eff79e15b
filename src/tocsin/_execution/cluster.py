"""A Dask cluster as an executor: work goes to its workers, summaries come back, in order and each exactly once."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import math
import pickle
import platform
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tocsin._common.errors import InputError, MissingExtraError, Option, TocsinError
from tocsin._compute import Functions
from tocsin._execution.memory import memory_kept

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
R = TypeVar("R")

PATIENCE = 10
"""Seconds in which a scheduler must answer."""

BATCH_SECONDS = 0.5
"""A task that is this long does not feel what Dask needs for each (a few milliseconds), and is soon done again."""

LARGEST_BATCH = 4096

AHEAD = 2
"""Tasks that are under way or wait, for each thread of the cluster."""

CENSUS_SECONDS = 5.0
"""How often to count the threads of the cluster, which may grow and shrink."""


@contextmanager
def joined(given: object, functions: Functions) -> Iterator[Cluster | None]:
    """The cluster at an address, or that of a `distributed.Client`, while a fit lasts; None if none is given."""
    if given is None:
        yield None
        return
    if functions.backend == "torch":
        raise InputError(
            Option("cluster", given),
            f" and {functions} do not go together: PyTorch's results depend on the device and on the number of "
            "threads, and workers may differ in both. Give ",
            Option("backend", "numba"),
            ", or no ",
            Option("cluster"),
            ": on one GPU a fit takes a second.",
        )
    with Cluster(given) as cluster:
        yield cluster


class Cluster:
    """Runs pieces of work on the workers of a Dask scheduler. `map` is that of an `Executor`.

    What is mapped should be a `functools.partial`: its arguments travel to each worker once, however often they are
    used. Pieces go in batches, whose size follows from how long they take. When a worker dies, Dask gives its work to
    others; pieces come out the same there, and only one of the results is taken.

    given: the scheduler's address, or a `distributed.Client`.
    """

    def __init__(self, given: object) -> None:
        if importlib.util.find_spec("distributed") is None:
            raise MissingExtraError("distributed", "dask", Option("cluster", given))
        self._distributed = importlib.import_module("distributed")
        self._own = isinstance(given, str)
        if isinstance(given, str):
            self._client = self._connect(given)
        elif isinstance(given, self._distributed.Client):
            self._client = given
        else:
            raise InputError(
                Option("cluster", given),
                " is not a cluster; give a scheduler's address, such as 'tcp://host:8786', or a distributed.Client.",
            )
        self._sent: dict[int, tuple[object, Future]] = {}
        self._threads, self._counted = 0, -math.inf
        try:
            self._must_have_workers()
            self._must_agree()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the workers forget what they were sent; leave the cluster, if this object joined it."""
        self._sent.clear()
        if self._own:
            self._client.close()

    # Work

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """In the items' order."""
        todo, size = deque(items), 1
        waiting: deque[Future] = deque()
        with self._told_clearly():
            try:
                while todo or waiting:
                    while todo and len(waiting) < AHEAD * self._count():
                        # The last batches are as small as it takes to give every thread its share.
                        take = max(min(size, len(todo) // self._count()), 1)
                        waiting.append(self._submit(function, [todo.popleft() for _ in range(min(take, len(todo)))]))
                    seconds, results = waiting.popleft().result()
                    size = min(max(int(BATCH_SECONDS / max(seconds / len(results), 1e-6)), 1), LARGEST_BATCH)
                    yield from results
            finally:
                self._client.cancel(list(waiting))

    def as_done(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """As they come, one by one: for long pieces of work."""
        with self._told_clearly():
            waiting = {self._submit(function, [item]) for item in items}
            try:
                for future in self._distributed.as_completed(list(waiting), loop=self._client.loop):
                    waiting.remove(future)
                    _, results = future.result()
                    yield from results
            finally:
                self._client.cancel(list(waiting))

    def _submit(self, function: Callable[[T], R], batch: list[T]) -> Future:
        called, shared = (function.func, function.args) if isinstance(function, functools.partial) else (function, ())
        sent = [self._send(argument) for argument in shared]
        return self._client.submit(_work, environment(), _pickled((called, batch)), *sent, pure=False)

    def _send(self, thing: object) -> Future:
        """A future for it, always the same. As a task, not scattered: Dask makes it again if all that hold it die."""
        if id(thing) not in self._sent:
            dask = importlib.import_module("dask")
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
                future = self._client.submit(_unpickled, _pickled(thing), pure=False)
            self._sent[id(thing)] = thing, future  # held, so that no other thing can have its id
        return self._sent[id(thing)][1]

    def _count(self) -> int:
        """Threads of all workers; 1 while there are none."""
        now = time.monotonic()
        if now - self._counted > CENSUS_SECONDS:
            self._threads, self._counted = sum(self._client.nthreads().values()), now
        return max(self._threads, 1)

    # Trouble

    def _connect(self, address: str) -> Client:
        try:
            return self._distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(
                Option("cluster", address),
                f": no Dask scheduler answered there within {PATIENCE} seconds ({error}). Start one with 'dask "
                "scheduler', or give the address that it prints, such as 'tcp://host:8786'.",
            ) from error

    def _must_have_workers(self) -> None:
        """Else there would be nothing to see but that it takes long."""
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            address = self._client.scheduler.address
            raise InputError(
                f"The Dask scheduler at {address} had no workers for {PATIENCE} seconds, and without one nothing is "
                f"computed. Start some: 'dask worker {address}'."
            ) from error

    def _must_agree(self) -> None:
        """Other versions may round, or draw random numbers, in another way."""
        _must_equal(environment(), self._client.run_on_scheduler(_report()), "the scheduler")
        for worker, theirs in self._client.run(_report(), on_error="ignore").items():  # those that die are not asked
            _must_equal(environment(), theirs, worker)

    @contextmanager
    def _told_clearly(self) -> Iterator[None]:
        try:
            yield
        except self._distributed.KilledWorker as error:
            raise TocsinError(
                f"{error.allowed_failures + 1} workers died over the same piece of work, the last of them "
                f"{error.last_worker.address}, so it is not tried again. Most often memory does not suffice: give the "
                "workers more of it, or fewer threads each. Their logs say what happened."
            ) from error
        except (CancelledError, self._distributed.comm.CommClosedError) as error:
            raise TocsinError(
                "The Dask scheduler went away while there was work to do, and what its workers held is lost. Start it "
                "again, then the same call."
            ) from error


def _work(expected: dict[str, str], payload: bytes, *shared: object) -> tuple[float, list[object]]:
    """A batch of work, on a worker; and the seconds that it took."""
    _must_equal(expected, environment(), "a worker that joined later")
    function, batch = _unpickled(payload)
    began = time.perf_counter()
    with memory_kept():
        results = [function(*shared, item) for item in batch]
    return time.perf_counter() - began, results


def _pickled(thing: object) -> bytes:
    """Functions of the user's by value; and bytes, so that the scheduler need not know what is in them."""
    cloudpickle = importlib.import_module("cloudpickle")
    try:
        payload: bytes = cloudpickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InputError(
            f"What is to be computed cannot be sent to a cluster: {error}. Functions of your own, and what they refer "
            "to, must be picklable: no open files, locks, connections or generators. Or fit without ",
            Option("cluster", ...),
        ) from error
    return payload


def _unpickled(payload: bytes) -> Any:
    try:
        return pickle.loads(payload)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"A worker of the cluster cannot load what it was sent: {error}. Functions of your own must be importable "
            "there (install the module, or client.upload_file), or be defined in the script that fits."
        ) from error


# Versions


@functools.cache
def environment() -> dict[str, str]:
    """What must be the same everywhere for results to be the same to the last bit."""
    from importlib.metadata import version  # slow to import

    sources = hashlib.sha256()
    folder, package = Path(__file__).parent.parent, sys.modules["tocsin"]
    for file in sorted(folder.rglob("*.py")):
        sources.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return {
        "tocsin": f"{package.__version__} (sources {sources.hexdigest()[:8]})",
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": version("numpy"),
        "numba": version("numba"),
    }


def _report() -> Callable[[], dict[str, str]]:
    """A function that Dask sends by value, so that it runs where there is no Tocsin too."""

    def report() -> dict[str, str]:
        try:
            from tocsin._execution.cluster import environment
        except ImportError as error:
            return {"tocsin": f"none ({error})"}
        return environment()

    return report


def _must_equal(ours: dict[str, str], theirs: dict[str, str], who: str) -> None:
    differences = [
        f"{name} {theirs.get(name, 'none')} instead of {version}"
        for name, version in ours.items()
        if theirs.get(name) != version
    ]
    if differences:
        raise InputError(
            f"On the cluster, {who} has {', '.join(differences)}. Results are the same to the last bit only if "
            "versions are; install the same ones everywhere, and start scheduler and workers again."
        )
