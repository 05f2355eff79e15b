"""Runs experiments: pieces of work side by side in processes, kept as they are done, then tables, then figures."""

from __future__ import annotations

import csv
import io
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import partial
from itertools import cycle
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from tocsin._common.errors import InputError, Option, TocsinError
from tocsin._common.files import replacing
from tocsin._compute import BACKEND_VARIABLE, DEVICE_VARIABLE, Backend, load
from tocsin._execution.cluster import Cluster
from tocsin._execution.progress import progress_bar
from tocsin._execution.threads import OneAtATime, available_cores, one_thread
from tocsin._experiments import provenance
from tocsin._experiments.base import Experiment, Options, Result, Row, Table, Tables, Unit
from tocsin._experiments.ledger import Ledger

Done = tuple[Unit, Result, float, str]
"""A piece of work, what it found, the seconds that it took, and the machine that did it."""

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Laboratory:
    """A folder with a ledger of the work done, and what was made of it.

    workers: processes; by default one per core. Their number changes nothing in the results.
    cluster: the address of a Dask scheduler, to do the work on its workers instead.
    progress: whether to show bars on standard error; by default, on a terminal.
    fresh: do everything again.
    backend, device: what computes, and where. Backends draw random numbers of their own, so each has its own results.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int | None = None,
        cluster: str | None = None,
        progress: bool | None = None,
        fresh: bool = False,
        backend: Backend = "numba",
        device: str | None = None,
    ) -> None:
        self.folder, functions = folder, load(backend, device)
        self._backend = functions.backend
        self._computing = {BACKEND_VARIABLE: functions.backend, DEVICE_VARIABLE: functions.device}
        self._workers = workers or len(available_cores())
        self._cluster, self._progress, self._fresh = cluster, progress, fresh
        self._redone: set[str] = set()
        self.origins: set[tuple[str, str]] = set()

    def run(self, experiment: Experiment, options: Options) -> Tables:
        """Measure, and write the tables."""
        self.origins = set()
        with _environment(self._computing):
            tables = experiment.measure(options, self._perform)
        commits, machines = (", ".join(sorted(set(names))) for names in zip(*self.origins, strict=True))
        for name, table in tables.items():
            origin: Row = {"seed": options.seed, "commit": commits, "machine": machines, "backend": self._backend}
            write_table(self.folder / f"{name}.csv", [{**row, **origin} for row in table])
        return tables

    def draw(self, name: str, experiment: Experiment) -> str:
        """Draw figures from the tables in the folder, and write what there is to read."""
        tables = {table: read_table(self.folder / f"{table}.csv") for table in experiment.tables}
        text = experiment.draw(tables, self.folder)
        with replacing(self.folder / f"{name}.md") as file:
            file.write(text.encode())
        return text

    def _perform(self, what: str, units: Sequence[Unit]) -> list[Result]:
        # Opened only now: an experiment that refuses its input leaves no trace.
        with closing(Ledger(self.folder / "ledger.sqlite")) as ledger:
            return self._performed(ledger, what, units)

    def _performed(self, ledger: Ledger, what: str, units: Sequence[Unit]) -> list[Result]:
        if self._fresh:
            for key in {self._key(unit) for unit in units} - self._redone:
                ledger.forget(key)
                self._redone.add(key)
        missing = [unit for unit in units if self._key(unit) not in ledger]
        commit = provenance.commit()
        with progress_bar(what, self._progress) as report:
            report(len(units) - len(missing), len(units))
            for number, done in enumerate(self._results(missing), len(units) - len(missing) + 1):
                unit, result, seconds, machine = done
                ledger.add(self._key(unit), result, commit=commit, machine=machine, seconds=seconds)
                report(number, len(units))
        self.origins |= {ledger.origin(self._key(unit)) for unit in units}
        return [ledger[self._key(unit)] for unit in units]

    def _key(self, unit: Unit) -> str:
        """What a piece of work is known by."""
        return unit.key if self._backend == "numba" else f"{unit.key} {self._backend}"

    def _results(self, units: Sequence[Unit]) -> Iterator[Done]:
        """As they come."""
        if self._cluster is not None:
            with Cluster(self._cluster) as cluster:
                yield from cluster.as_done(OneAtATime(partial(_elsewhere, self._computing)), units)
            return
        if self._workers == 1 or len(units) <= 1:
            for unit in units:
                yield _timed(unit)
            return
        # Forked children of a process with threads may hang, so they start afresh. Each keeps to one core.
        context = multiprocessing.get_context("spawn")
        cores: SimpleQueue[int] = context.SimpleQueue()
        for _, core in zip(range(self._workers), cycle(available_cores()), strict=False):
            cores.put(core)
        with _environment(dict.fromkeys(ONE_THREAD, "1")):
            pool = ProcessPoolExecutor(self._workers, context, _settle, (cores,))
            try:
                waiting = [pool.submit(_timed, unit) for unit in units]
                for done in as_completed(waiting):
                    waiting.remove(done)  # and its result with it
                    yield done.result()
            except BrokenProcessPool as error:
                raise TocsinError(
                    "A worker process was killed (by lack of memory?). What was done is kept: run the same command "
                    "again, perhaps with fewer ",
                    Option("workers"),
                    ".",
                ) from error
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def _elsewhere(computing: dict[str, str], unit: Unit) -> Done:
    """In a process that is not ours, and may have several threads: each piece of work uses one, and our backend."""
    with _environment(computing), one_thread():
        return _timed(unit)


def _timed(unit: Unit) -> Done:
    began = time.perf_counter()
    result = unit.run()
    return unit, result, time.perf_counter() - began, provenance.machine()


def _settle(cores: SimpleQueue[int]) -> None:
    """Keep this process to one core, if the system allows it, so that its threads do not crowd out the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores.get()})


def _leave_with_the_parent() -> None:
    """A parent that was killed cannot send its workers home, and they would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


TEXTS = {"commit", "machine", "backend"}
"""Columns that are no numbers, though a commit may look like one."""


def write_table(file: Path, table: Table) -> None:
    """As CSV, whole or not at all."""
    lines = io.StringIO()
    writer = csv.DictWriter(lines, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    with replacing(file) as target:
        target.write(lines.getvalue().encode())


def read_table(file: Path) -> Table:
    """What `write_table` wrote: numbers where all of a column are numbers, but for where it comes from."""
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
    except FileNotFoundError as error:
        raise InputError(
            f"There is no {file}, so nothing can be drawn yet. Run it without ", Option("draw_only"), " first."
        ) from error
    texts = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    columns = {name: own if name in TEXTS else _numbers(own) for name, own in texts.items()}
    return [{name: values[i] for name, values in columns.items()} for i in range(len(rows))]


def _numbers(texts: list[str]) -> list[str] | list[int] | list[float]:
    for kind in (int, float):
        try:
            return [kind(text) for text in texts]
        except ValueError:
            continue
    return texts
