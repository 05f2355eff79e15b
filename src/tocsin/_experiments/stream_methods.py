"""What watches recordings: the default detector, what it was before views, and charts whose limits can be moved."""

from __future__ import annotations

import time
import warnings
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tocsin._compute.arrays import Int64Array
from tocsin._detector.detector import Detector
from tocsin._experiments.charts import Chart, Hotelling, RehearsedHotelling
from tocsin._experiments.forward_rehearsal import ForwardRehearsal
from tocsin._statistics import MMD

if TYPE_CHECKING:
    from pandas import DataFrame


class Method(Protocol):
    """Learns from a reference, then says in which rows of a stream it rings.

    fit: may raise InputError, which is a refusal.
    alarms: each call begins as if the fit had just been made.
    interval: the lowest and highest expected run time that it takes to be likely (90 %), or None.
    """

    def fit(self, reference: DataFrame, ert: float) -> None: ...

    def alarms(self, stream: DataFrame) -> Int64Array: ...

    def interval(self) -> tuple[float, float] | None: ...


class Default:
    """Tocsin as it comes."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.detector = self._unfitted(500)

    def fit(self, reference: DataFrame, ert: float) -> None:
        self.detector = self._unfitted(ert)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.detector.fit(reference, workers=1, progress=False)

    def alarms(self, stream: DataFrame) -> Int64Array:
        fresh = copy(self.detector)  # a reset would begin another run, warm with other points
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.flatnonzero(fresh.update_many(stream).alarm)

    def interval(self) -> tuple[float, float] | None:
        return self.detector.calibration_.interval()

    def _unfitted(self, ert: float) -> Detector:
        return Detector(ert, seed=self._seed)


class Before(Default):
    """What came before views: one MMD over all columns, by blocks where the order of the reference matters."""

    def _unfitted(self, ert: float) -> Detector:
        return Detector(ert, statistic=MMD(), seed=self._seed)


DEFAULT, BEFORE, PROTOTYPE = "default", "version 0.1", "prototype"
CHARTS: dict[str, type[Chart]] = {
    PROTOTYPE: ForwardRehearsal,
    "Hotelling": Hotelling,
    "Hotelling, rehearsed": RehearsedHotelling,
}
"""Those whose limit can be moved."""
METHODS = (DEFAULT, BEFORE, *CHARTS)


def make(name: str, seed: int) -> Method:
    """A method that has learnt nothing yet."""
    return CHARTS[name]() if name in CHARTS else {DEFAULT: Default, BEFORE: Before}[name](seed)


def fitted(name: str, seed: int, reference: DataFrame, ert: float) -> tuple[Method, float]:
    """A method that has learnt, and the seconds that it took; from memory if this process has it from equal rows."""
    names = tuple(str(column) for column in reference.columns)
    return _fitted(name, seed, names, reference.to_numpy(np.float64).tobytes(), ert)


@lru_cache(maxsize=16)  # the runs of a plant share their reference
def _fitted(name: str, seed: int, names: tuple[str, ...], rows: bytes, ert: float) -> tuple[Method, float]:
    import pandas  # an extra

    method = make(name, seed)
    frame = pandas.DataFrame(np.frombuffer(rows).reshape(-1, len(names)).copy(), columns=list(names))
    began = time.perf_counter()
    method.fit(frame, ert)
    return method, time.perf_counter() - began
