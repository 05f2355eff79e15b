"""Is a context worth having? False alarms and delays of the default detector with `given`, and without.

Simulated: laws whose truth is known (context_laws.py), noise that remembers nothing, or 0.7 of itself; references of
500 to 3000 rows. The detector watches what follows, and another stream in which the context has moved on and the law
given it has not. Then a column is shifted by half of its unconditional spread: without the context what is watched is
the column alone, at thresholds that are moved along the detector's own curve of rarities until both ring as often in
the quiet stream.

Recorded (context_sets.py): each set has a context that people would name. Alarms in what follows a reference, and
delays of the same shift in the stream's own rows, at the detectors' own thresholds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array
from tocsin._data.tables import Table, Values
from tocsin._detector.base import altered, fitted_of
from tocsin._detector.detector import Detector
from tocsin._experiments import context_sets, contexts_baselines, contexts_report
from tocsin._experiments.base import Experiment, Options, Perform, Result, Row, Tables, Unit, generator
from tocsin._experiments.context_laws import CONTEXT_LAWS, MOVES, as_table, drawn
from tocsin._experiments.context_sets import SETS
from tocsin._power.trials import at_run_time

ERT, ROWS = 500, 6000
"""And rows of a quiet stream."""

MEMORIES, POINTS, REFERENCES = (0.0, 0.7), (500, 1000, 3000), 10
QUICK_MEMORIES, QUICK_POINTS, QUICK_REFERENCES = (0.0,), (500,), 1

MOVED = 1.0
"""How far a context moves on, in its spreads."""

SHIFT = 0.5
"""Of the unconditional spread."""

LEAD, HORIZON, TRIALS = 100, 500, 6
"""Rows before a shift, and those in which it can be found; trials for each reference."""

RECORDED_TRIALS = 12

LEAST, MOST = 0.25, 4.0
"""Between which the ratio of observed to promised alarms is taken, to move thresholds by."""

WITH, WITHOUT = "with", "without"


@dataclass(frozen=True)
class Conditional(Unit):
    """A reference from a law, and what a detector with its context and one without make of what follows."""

    law: str
    memory: float
    points: int
    number: int
    seed: int

    def run(self) -> Result:
        rng = generator(self.seed, "contexts", self.law, str(self.memory), self.points, self.number)
        context, numbers = drawn(self.law, rng, self.points, self.memory)
        size, reference = SHIFT * float(numbers.std()), as_table(context, numbers)
        quiet = as_table(*drawn(self.law, rng, ROWS, self.memory))
        moved = as_table(*drawn(self.law, rng, ROWS, self.memory, MOVED if self.law in MOVES else 0.0))
        trials = [self._shifted(rng, size) for _ in range(TRIALS)]
        found = dict[str, object]()
        for method, names in ((WITH, list(context)), (WITHOUT, None)):
            detector = fitted(reference, names, list(context), self.seed)
            rang, judged = watched(detector, seen_by(quiet, names, list(context)))
            found[f"{method}_alarms"], found[f"{method}_rows"] = len(rang), judged
            found[f"{method}_views"] = fitted_of(detector).live.goes_on
            if names is not None:
                again, of_moved = watched(detector, seen_by(moved, names, list(context)))
                found["moved_alarms"], found["moved_rows"] = len(again), of_moved
            ratio = float(np.clip(len(rang) * ERT / max(judged, 1), LEAST, MOST))
            evened = as_often(detector, ratio)
            found[f"{method}_delays"] = [delay(evened, seen_by(trial, names, list(context)), LEAD) for trial in trials]
        return {name: np.array(value) for name, value in found.items()}

    def _shifted(self, rng: np.random.Generator, size: float) -> Table:
        context, numbers = drawn(self.law, rng, LEAD + HORIZON, self.memory)
        numbers[LEAD:] += size
        return as_table(context, numbers)


@dataclass(frozen=True)
class Recorded(Unit):
    """A cut of a recorded set, watched with its context and without."""

    folder: str
    digest: str
    name: str
    cut: int
    seed: int

    @property
    def key(self) -> str:
        """Without the folder: data that moved are the same data."""
        return super(Recorded, replace(self, folder="")).key

    def run(self) -> Result:
        own = context_sets.cut(Path(self.folder), self.name, self.cut)
        rng = generator(self.seed, "contexts", self.name, self.cut)
        column = own.watched[0]
        numbers = own.reference.columns[column].data
        size = SHIFT * float(np.nanstd(numbers))
        places = rng.integers(LEAD, max(len(own.stream) - HORIZON, LEAD + 1), RECORDED_TRIALS)
        trials = [_with_shift(own.stream, column, int(place), size) for place in places]
        found = dict[str, object]()
        for method, names in ((WITH, list(own.given)), (WITHOUT, None)):
            try:
                detector = fitted(own.reference, names, list(own.given), self.seed, own.groups)
            except InputError:
                return {"refused": np.array(True)}
            rang, judged = watched(detector, seen_by(own.stream, names, list(own.given)))
            found[f"{method}_alarms"], found[f"{method}_rows"] = len(rang), judged
            found[f"{method}_delays"] = [
                delay(detector, seen_by(each, names, list(own.given)), LEAD) for each in trials
            ]
        found["unseen"] = len(own.stream) - int(str(found["with_rows"]))
        return {"refused": np.array(False)} | {name: np.array(value) for name, value in found.items()}


def fitted(
    reference: Table, given: list[str] | None, context: Sequence[str], seed: int, groups: object = None
) -> Detector:
    """The default detector, with a context or without the columns of one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = Detector(ERT, given=given, interval=False, seed=seed)
        return detector.fit(seen_by(reference, given, context), groups=groups, workers=1, progress=False)


def seen_by(table: Table, given: list[str] | None, context: Sequence[str]) -> Table:
    """What a detector sees of a table."""
    return table if given is not None else table.without(context)


def watched(detector: Detector, stream: Table) -> tuple[list[int], int]:
    """Rows that rang, and how many were judged."""
    detector.reset()
    outcomes = detector.update_many(stream)
    unseen = 0 if outcomes.unseen is None else int(outcomes.unseen.sum())
    return np.flatnonzero(outcomes.alarm).tolist(), len(outcomes) - unseen


def as_often(detector: Detector, ratio: float) -> Detector:
    """With thresholds that make up for as many alarms as were seen for every one that was promised."""
    own = at_run_time(fitted_of(detector), ERT * ratio)
    return altered(detector, live=own.live, calibration=own.calibration)


def delay(detector: Detector, stream: Table, onset: int) -> float:
    """Rows from the first that is shifted to the first alarm, that included; infinite if none is heard."""
    rang = [row for row in watched(detector, stream)[0] if row >= onset]
    return float(rang[0] - onset + 1) if rang else np.inf


def _with_shift(stream: Table, column: str, place: int, size: float) -> Table:
    """Some rows of a stream, a column of which is shifted from a place on."""
    some = stream[np.arange(place - LEAD, min(place + HORIZON, len(stream)))]
    numbers = some.columns[column].data.copy()
    numbers[LEAD:] += size
    return Table({**some.columns, column: Values.of_numbers(numbers)})


def measure(options: Options, perform: Perform) -> Tables:
    """A row per reference and method."""
    folder = context_sets.find(options.data)
    contexts_baselines.folders(folder)  # refuse what is not whole before time is spent
    simulated = list(_units(options))
    found = perform("contexts", simulated)
    recorded = [
        Recorded(str(folder), SETS[name].digest(folder), name, place, options.seed)
        for name in SETS
        for place in range(1 if options.quick else SETS[name].cuts)
    ]
    return {
        "contexts_simulated": [_row(unit, own) for unit, own in zip(simulated, found, strict=True)],
        "contexts_recorded": [
            _recorded_row(unit, own) for unit, own in zip(recorded, perform("recorded contexts", recorded), strict=True)
        ],
        **contexts_baselines.tables(options, perform),
    }


def _units(options: Options) -> Iterator[Conditional]:
    memories, points = (QUICK_MEMORIES, QUICK_POINTS) if options.quick else (MEMORIES, POINTS)
    for number in range(QUICK_REFERENCES if options.quick else REFERENCES):
        for count in points:
            for memory in memories:
                for law in CONTEXT_LAWS:
                    yield Conditional(law, memory, count, number, options.seed)


def _row(unit: Conditional, own: Result) -> Row:
    row: Row = {"law": unit.law, "memory": unit.memory, "reference": unit.points, "number": unit.number, "ert": ERT}
    names = [f"{method}_{what}" for method in (WITH, WITHOUT) for what in ("alarms", "rows", "views")]
    row |= {name: int(own[name]) for name in [*names, "moved_alarms", "moved_rows"]}
    return row | {f"{method}_{k}": float(value) for method in (WITH, WITHOUT) for k, value in _trials(own, method)}


def _recorded_row(unit: Recorded, own: Result) -> Row:
    refused, names = (
        bool(own["refused"]),
        [f"{method}_{what}" for method in (WITH, WITHOUT) for what in ("alarms", "rows")],
    )
    row: Row = {"set": unit.name, "given": ", ".join(SETS[unit.name].given), "cut": unit.cut, "ert": ERT}
    row |= {"refused": int(refused)} | {name: 0 if refused else int(own[name]) for name in [*names, "unseen"]}
    for method in (WITH, WITHOUT):
        delays: Float64Array = np.full(RECORDED_TRIALS, np.inf) if refused else own[f"{method}_delays"]
        row |= {f"{method}_{k}": float(value) for k, value in enumerate(delays.tolist())}
    return row


def _trials(own: Result, method: str) -> Iterator[tuple[int, float]]:
    return enumerate(own[f"{method}_delays"].tolist())


CONTEXTS = Experiment(
    "false alarms and delays with contexts and own baselines, and without, on simulated and on recorded streams",
    ("contexts_simulated", "contexts_recorded", "baselines_simulated", "baselines_recorded"),
    measure,
    contexts_report.draw,
    has_figures=False,
    needs_data=True,
)
