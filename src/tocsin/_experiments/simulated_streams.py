"""Simulated streams without a change: false alarms of the default, and of what came before views.

Ten laws (stream_laws.py), one column or five, references of 100 to 3000 rows. A stream goes on where its reference
ended, for ten times the ERT; a new run begins after each alarm. Autoregressive streams, for which the expected run time
is estimated reference by reference, are watched twice as long, and after more references. The seeds were drawn for
this experiment: no choice was made on its streams, though choices were made on others of the same laws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tocsin._common.errors import InputError
from tocsin._experiments import simulated_report
from tocsin._experiments.base import Experiment, Options, Perform, Result, Row, Tables, Unit, generator
from tocsin._experiments.stream_laws import AUTOREGRESSIVE, STREAM_LAWS
from tocsin._experiments.stream_methods import BEFORE, DEFAULT, Default, make

ERT = 500
POINTS, COLUMNS = (100, 300, 1000, 3000), (1, 5)
REFERENCES, WATCHED = 8, 10
"""References of each law, size and width, and ERTs that each is followed by."""

MANY_REFERENCES, WATCHED_LONG = 20, 20
"""The same, of autoregressive streams."""

QUICK_POINTS, QUICK_COLUMNS, QUICK_REFERENCES = (300, 1000), (1,), 1


@dataclass(frozen=True)
class Simulated(Unit):
    """A stream from a law, and a detector that learns from its beginning and watches the rest."""

    law: str
    columns: int
    points: int
    watched: int
    method: str
    number: int
    seed: int

    def run(self) -> Result:
        rng = generator(self.seed, "simulated streams", self.law, self.columns, self.points, self.number)
        rows = STREAM_LAWS[self.law](rng, self.points + self.watched * ERT, self.columns)
        import pandas  # an extra

        frame = pandas.DataFrame(rows, columns=[f"c{place}" for place in range(self.columns)])
        method = make(self.method, int(rng.integers(2**31)))
        assert isinstance(method, Default)
        try:
            method.fit(frame[: self.points], ERT)
        except InputError:
            return {"refused": np.array(True)}
        rehearsal = method.detector.calibration_.rehearsal
        return {
            "refused": np.array(False),
            "alarms": np.array(len(method.alarms(frame[self.points :]))),
            "interval": np.array(method.interval()),
            "views": np.array(rehearsal is not None),
            "told": np.array(rehearsal is not None and bool(rehearsal.wandering)),
        }


def measure(options: Options, perform: Perform) -> Tables:
    """A row per reference and method."""
    units = list(_units(options))
    results = perform("simulated streams", units)
    return {"simulated_streams": [_row(unit, result) for unit, result in zip(units, results, strict=True)]}


def _units(options: Options) -> Iterator[Simulated]:
    points, widths = (QUICK_POINTS, QUICK_COLUMNS) if options.quick else (POINTS, COLUMNS)
    for law in STREAM_LAWS:
        references, watched = (MANY_REFERENCES, WATCHED_LONG) if law in AUTOREGRESSIVE else (REFERENCES, WATCHED)
        for count in reversed(points):  # the slowest first
            for columns in widths:
                for number in range(QUICK_REFERENCES if options.quick else references):
                    for method in (DEFAULT, BEFORE):
                        yield Simulated(law, columns, count, watched, method, number, options.seed)


def _row(unit: Simulated, result: Result) -> Row:
    refused = bool(result["refused"])
    low, high = (np.nan, np.nan) if refused else (float(f"{bound:.5g}") for bound in result["interval"])
    return {
        "law": unit.law,
        "columns": unit.columns,
        "reference": unit.points,
        "number": unit.number,
        "method": unit.method,
        "ert": ERT,
        "refused": int(refused),
        "rows": unit.watched * ERT,
        "alarms": 0 if refused else int(result["alarms"]),
        "low": low,
        "high": high,
        "views": 0 if refused else int(result["views"]),
        "told": 0 if refused else int(result["told"]),
    }


SIMULATED_STREAMS = Experiment(
    "false alarms on simulated streams of ten laws, independent and not",
    ("simulated_streams",),
    measure,
    simulated_report.draw,
    has_figures=False,
)
