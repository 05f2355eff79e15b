"""What Ctrl-C leaves behind: a detector as before the call or as after it.

Every try makes a call and interrupts it by a signal, at a random moment within (or shortly after) the time that the
call takes. Its object, as it is then saved, is compared byte for byte with twins that have made the call, and have not.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import numpy as np

from tocsin import LSDD, MMD, Custom, Detector, DetectorBank, Fleet, Landmarks, MeanShift, Views
from tocsin._compute import Backend
from tocsin._compute.arrays import Array, Float64Array
from tocsin._statistics.base import Statistic
from tocsin.baselines import LSDDInc, ScanB

BACKENDS: tuple[Backend, ...] = ("numba", "numpy", "torch") if find_spec("torch") else ("numba", "numpy")
WIDTH, STREAMS, KEYS = 2, 600, 3
LATEST = 1.3
"""When signals come at last, in times that a call takes."""


def laplace(X: Array, Y: Array) -> Array:
    """A kernel of a user's."""
    return np.asarray(np.exp(-np.abs(X[:, None] - Y[None]).sum(-1)))


def gap(X: Array, Y: Array) -> float:
    """A statistic of a user's."""
    return float(np.abs(np.mean(X, 0) - np.mean(Y, 0)).max())


STATISTICS: dict[str, Callable[[], Statistic | list[Statistic]]] = {
    "MMD": MMD,
    "LSDD": LSDD,
    "MeanShift": MeanShift,
    "three together": lambda: [MMD(), LSDD(), MeanShift()],
    "landmarks": lambda: MMD(approximation=Landmarks(30)),
    "views": Views,
    "own kernel": lambda: MMD(laplace),
    "own function": lambda: Custom(gap),
}

CALLS: dict[str, Callable[[Any, np.random.Generator], object]] = {
    "update": lambda detector, rng: detector.update(rng.normal(size=WIDTH)),
    "update_many": lambda detector, rng: detector.update_many(rng.normal(size=(40, WIDTH))),
    "update_until_alarm": lambda detector, rng: detector.update_until_alarm(rng.normal(size=(40, WIDTH))),
    "reset": lambda detector, _: detector.reset(),
}


@dataclass
class Verdict:
    """Of all tries of a call: how many were interrupted, and how many left something that is neither old nor new."""

    tries: int = 0
    interrupted: int = 0
    torn: int = 0


class Alarm:
    """A signal at a chosen moment, which interrupts as Ctrl-C does; what comes too late is not heard."""

    def __init__(self) -> None:
        self.armed = False
        self._before = signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def interrupts(self, call: Callable[[], object], delay: float) -> bool:
        """Make a call; whether it was interrupted."""
        try:
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, delay)
            call()
            self.armed = False
        except KeyboardInterrupt:
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False

    def done(self) -> None:
        """Signals mean again what they did."""
        signal.signal(signal.SIGALRM, self._before)


def saved(watcher: Any, folder: Path) -> bytes:
    """What a file holds of it."""
    watcher.save(folder / "saved.tocsin")
    return (folder / "saved.tocsin").read_bytes()


def tried(
    watcher: Any,
    twin_of: Callable[[Any], Any],
    call: Callable[[Any, np.random.Generator], object],
    tries: int,
    folder: Path,
    seed: int = 0,
) -> Verdict:
    """Interrupt a call that changes a detector or a bank, again and again."""
    verdict, alarm, moments = Verdict(), Alarm(), np.random.default_rng(seed)
    try:
        for number in range(tries):
            before, twin = saved(watcher, folder), twin_of(watcher)
            began = time.perf_counter()
            call(twin, np.random.default_rng(number))
            took = time.perf_counter() - began
            rng, delay = np.random.default_rng(number), max(moments.uniform(0, LATEST * took), 1e-6)
            interrupted = alarm.interrupts(partial(call, watcher, rng), delay)
            verdict.tries, verdict.interrupted = verdict.tries + 1, verdict.interrupted + interrupted
            now, after = saved(watcher, folder), saved(twin, folder)
            if now not in ((before, after) if interrupted else (after,)):
                verdict.torn, watcher = verdict.torn + 1, twin
    finally:
        alarm.done()
    return verdict


def fleet_tried(fleet: Fleet, tries: int, seed: int = 0) -> Verdict:
    """Interrupt steps of a fleet, which must answer the next one as if nothing had been."""
    verdict, alarm, moments = Verdict(), Alarm(), np.random.default_rng(seed)
    keys = [str(k) for k in range(KEYS)]
    states: Sequence[bytes | None] = [None] * KEYS
    try:
        for number in range(tries):
            rows, owner = np.random.default_rng(number).normal(size=(30, WIDTH)), np.arange(30) % KEYS
            given = keys, states, rows, owner, number * 30 + np.arange(30)
            began = time.perf_counter()
            expected = fleet.step(*given)
            took = time.perf_counter() - began
            delay = max(moments.uniform(0, LATEST * took), 1e-6)
            interrupted = alarm.interrupts(partial(fleet.step, *given), delay)
            verdict.tries, verdict.interrupted = verdict.tries + 1, verdict.interrupted + interrupted
            verdict.torn += repr(fleet.step(*given)) != repr(expected)
            states = expected.states
    finally:
        alarm.done()
    return verdict


def reference() -> Float64Array:
    """Points that all detectors here are fitted to."""
    return np.random.default_rng(0).normal(size=(150, WIDTH))


def fitted(statistic: Statistic | list[Statistic], backend: Backend) -> Detector:
    """A detector that rings often, so that runs end and begin too."""
    if isinstance(statistic, Views) and backend == "numpy":
        return _moved(fitted(statistic, "numba"), backend)  # a fit follows many streams, which takes NumPy a minute
    detector = Detector(40, statistic, window=(3, 6), paths=100, interval=False, seed=1, backend=backend, device="cpu")
    return detector.fit(reference(), progress=False)


def _moved(detector: Detector, backend: Backend) -> Detector:
    """The same, computed by another backend."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "moved.tocsin"
        detector.set_params(backend=backend).save(path)
        return Detector.load(path)


def bank_twin(folder: Path) -> Callable[[DetectorBank], DetectorBank]:
    """How a bank is doubled: by its file."""

    def twin(bank: DetectorBank) -> DetectorBank:
        bank.save(folder / "twin.tocsin")
        return DetectorBank.load(folder / "twin.tocsin")

    return twin


def bank_update(bank: DetectorBank, rng: np.random.Generator) -> object:
    """A step of all streams."""
    return bank.update(rng.normal(size=(bank.streams, WIDTH)))


def verdicts(tries: int, folder: Path) -> Iterator[tuple[str, Verdict]]:
    """Every call of every kind of detector, each interrupted so many times."""
    for backend in BACKENDS:
        watchers: dict[str, Callable[[], Any]] = {
            name: lambda make=make, backend=backend: fitted(make(), backend)  # type: ignore[misc]
            for name, make in STATISTICS.items()
        }
        if backend == "numba":
            watchers["LSDDInc"] = lambda: LSDDInc(40, window=5, seed=1).fit(reference())
            watchers["ScanB"] = lambda: ScanB(100, window=5, seed=1).fit(reference())
        for name, make in watchers.items():
            watcher = make()
            for call, act in CALLS.items():
                act(watcher, np.random.default_rng(0))  # compiled
                yield f"{call} of {name}, {backend}", tried(watcher, copy, act, tries, folder)
        bank = DetectorBank(fitted(MMD(), backend), STREAMS)
        yield f"update of a bank, {backend}", tried(bank, bank_twin(folder), bank_update, tries, folder)
        yield f"step of a fleet, {backend}", fleet_tried(Fleet(fitted(MMD(), backend), rest=0), tries)
