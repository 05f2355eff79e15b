"""Is the power card right? Changes that it says are found, or not, made in the stream that came after the reference.

The sets are those of `streams` (recorded_sets.py): 300 triples of a recording, a column and a change, as many from each
set, drawn at random among what the card of that recording has; where cards have fewer, recordings that were not drawn
fill up, a change of each. The default detector, at an ERT of 500, is fitted to the
reference and asked for its card. It then watches the stream, and at 24 random rows the change is made in copies of the
stream's own rows, as they were recorded: by the amount that the card states in the column's units, and so on. A delay
counts observations from the first that is changed up to the alarm; those beyond twice the card's horizon are infinite.

The change is made here anew, in the values of the recording and not in what the detector makes of them.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np

from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._detector.detector import Detector
from tocsin._experiments import power_card_report, recordings
from tocsin._experiments.base import Experiment, Options, Perform, Result, Row, Tables, Unit, generator
from tocsin._experiments.recorded_changes import running_mean
from tocsin._experiments.recorded_sets import SOURCES
from tocsin._experiments.recordings import Recording
from tocsin._power.result import Power, SimulatedChange

ERT = 500
TRIPLES, QUICK_TRIPLES = 300, 28
ONSETS, QUICK_ONSETS = 24, 8
BEFORE = 25
"""Rows before an onset that a running mean has."""

NUMBERS = ("share", "delay", "low", "high", "horizon", "chance", "median", "within", "twice", "luck")
"""Of each triple."""


@dataclass(frozen=True)
class Carded(Unit):
    """A recording, and changes drawn from its card.

    folder, digest: where the set is, and what it holds; the latter determines the result.
    """

    folder: str
    digest: str
    source: str
    recording: str
    triples: int
    onsets: int
    seed: int

    @property
    def key(self) -> str:
        """Without the folder: data that moved are the same data."""
        return super(Carded, replace(self, folder="")).key

    def run(self) -> Result:
        recording = recordings.read(Path(self.folder), self.source)[self.recording]
        rng = generator(self.seed, "power card", self.source, self.recording)
        detector, began = Detector(ERT, seed=self.seed), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                detector.fit(recording.reference, workers=1, progress=False)
            except InputError:
                return {"chosen": np.array(recording.chosen), "names": np.empty((0, 3), "U1")}
            fitted = time.perf_counter()
            card = detector.power(workers=1, progress=False)
            carded = time.perf_counter()
            picked = rng.choice(len(card.changes), min(self.triples, len(card.changes)), replace=False)
            changes = [card.changes[place] for place in picked]
            found = [_numbers(card, change, *own) for change, own in zip(changes, self._measured(
                detector, recording, card, changes, rng
            ), strict=True)]  # fmt: skip
        return {
            "chosen": np.array(recording.chosen),
            "names": np.array([[own.kind, own.column or "", str(own.size)] for own in changes]).reshape(-1, 3),
            "numbers": np.array(found).reshape(-1, len(NUMBERS)),
            "rows": np.array([len(recording.reference), recording.reference.shape[1], len(recording.stream)]),
            "views": np.array(card.rows == "stretches"),
            "seconds": np.array([fitted - began, carded - fitted]),
        }

    def _measured(
        self,
        detector: Detector,
        recording: Recording,
        card: Power,
        changes: Sequence[SimulatedChange],
        rng: np.random.Generator,
    ) -> Iterator[tuple[Float64Array, Float64Array]]:
        """Of each change, delays with and without it."""
        stream, watching = recording.stream, copy(detector)
        rows = stream.to_numpy(np.float64)
        horizon = min(2 * card.horizon, len(rows) // 2)
        onsets = np.sort(rng.integers(1, len(rows) - horizon + 1, self.onsets))
        states, place = [], 0
        for onset in onsets.tolist():
            watching.update_many(stream[place:onset])
            states.append(copy(watching))
            place = onset
        frame, names = type(stream), list(stream.columns)
        quiet = np.array(
            [_delay(state, stream[at : at + horizon]) for state, at in zip(states, onsets.tolist(), strict=True)]
        )
        for change in changes:
            delays = [
                _delay(state, frame(made(card, change, rows, names, onset, horizon, rng), columns=names))
                for state, onset in zip(states, onsets.tolist(), strict=True)
            ]
            yield np.array(delays), quiet


def _delay(state: Detector, rows: object) -> float:
    watching = copy(state)
    outcomes = watching.update_until_alarm(rows)
    return float(len(outcomes)) if outcomes.alarm.any() else np.inf


def _numbers(card: Power, change: SimulatedChange, delays: Float64Array, quiet: Float64Array) -> list[float]:
    """In the order of NUMBERS."""
    median = float(np.sort(delays)[(len(delays) - 1) // 2])
    twice = float((delays <= 2 * change.delay).mean()) if change.found else np.nan
    within, luck = (float((own <= card.horizon).mean()) for own in (delays, quiet))
    return [change.share, change.delay, change.low, change.high, card.horizon, card.chance, median, within, twice, luck]


def made(
    card: Power,
    change: SimulatedChange,
    rows: Float64Array,
    names: list[str],
    onset: int,
    horizon: int,
    rng: np.random.Generator,
) -> Float64Array:
    """The rows of a stream from an onset on, changed as a card says."""
    after = rows[onset : onset + horizon].copy()
    if change.column is None:
        if change.kind == "stuck":
            return np.repeat(rows[onset - 1 : onset], horizon, axis=0)
        sizes = {own.column: own.amount for own in card.changes if own.kind == "higher" and own.size == 1.0}
        moved: Float64Array = np.array([sizes.get(name) or 0.0 for name in names]) * float(change.size or 0.0)
        after += moved * rng.choice([-1.0, 1.0], len(names))
        return after
    column = names.index(change.column)
    values = after[:, column]
    if change.kind in ("higher", "lower", "other value"):
        values += (change.amount or 0.0) * (-1 if change.kind == "lower" else 1)
    elif change.kind in ("wider", "narrower"):
        first = max(0, onset - BEFORE)
        centre = np.full(horizon, np.median(rows[:, column]))
        if card.rows == "stretches":
            centre = running_mean(rows[first : onset + horizon, column : column + 1])[onset - first :, 0]
        values[:] = centre + float(change.size or 1.0) * (values - centre)
    elif change.kind == "stuck":
        values[:] = rows[onset - 1, column]
    elif change.kind == "missing":
        values[rng.random(horizon) < float(change.size or 0.0)] = np.nan
    elif change.kind == "uncoupled":
        values[:] = rows[_elsewhere(len(rows), onset, horizon, card.rows == "stretches", rng), column]
    return after


def _elsewhere(count: int, onset: int, horizon: int, ordered: bool, rng: np.random.Generator) -> Int64Array:
    """Rows of another time: in order, or any."""
    if not ordered:
        return rng.integers(0, count, horizon)
    starts = np.arange(count - horizon + 1)
    apart = starts[np.abs(starts - onset) >= horizon]
    return int(rng.choice(apart if len(apart) else starts)) + np.arange(horizon)


def measure(options: Options, perform: Perform) -> Tables:
    """A row per triple."""
    folder, wanted = recordings.find(options.data), QUICK_TRIPLES if options.quick else TRIPLES
    units = list(_units(options, folder, wanted))
    rows, further = _measured(units, perform), _further(options, folder, units)
    while len(rows) < wanted and (more := list(islice(further, wanted - len(rows)))):
        rows += _measured(more, perform)
    return {"power_card": rows}


def _measured(units: Sequence[Carded], perform: Perform) -> list[Row]:
    results = perform("power cards", units)
    return [row for unit, result in zip(units, results, strict=True) for row in _rows(unit, result)]


def _units(options: Options, folder: Path, triples: int) -> Iterator[Carded]:
    """As many triples from each set, of recordings drawn at random; fewer where a card has fewer changes."""
    for number, source in enumerate(SOURCES):
        names = list(recordings.read(folder, source))
        if not names:
            raise InputError(
                f"{SOURCES[source].path(folder)} has no recording that is long enough. Is the copy complete?"
            )
        own = triples * (number + 1) // len(SOURCES) - triples * number // len(SOURCES)
        picked = Counter(generator(options.seed, "power card", source).integers(0, len(names), own).tolist())
        for place in sorted(picked):
            yield _unit(options, folder, source, names[place], picked[place])


def _further(options: Options, folder: Path, units: Sequence[Carded]) -> Iterator[Carded]:
    """Recordings that were not drawn, a change of each: a set after the other, again and again."""
    drawn, left = {(unit.source, unit.recording) for unit in units}, {}
    for source in SOURCES:
        names = [name for name in recordings.read(folder, source) if (source, name) not in drawn]
        left[source] = generator(options.seed, "further power cards", source).permutation(names).tolist()
    for together in zip_longest(*left.values()):
        for source, name in zip(left, together, strict=True):
            if name is not None:
                yield _unit(options, folder, source, name, 1)


def _unit(options: Options, folder: Path, source: str, name: str, triples: int) -> Carded:
    onsets = QUICK_ONSETS if options.quick else ONSETS
    return Carded(str(folder), SOURCES[source].digest(folder), source, name, triples, onsets, options.seed)


def _rows(unit: Carded, result: Result) -> Iterator[Row]:
    for (kind, column, size), numbers in zip(result["names"], result.get("numbers", ()), strict=True):
        reference, columns, stream = (int(number) for number in result["rows"])
        fit, card = (round(float(seconds), 3) for seconds in result["seconds"])
        yield {
            "set": unit.source,
            "recording": unit.recording,
            "chosen": int(result["chosen"]),
            "reference": reference,
            "columns": columns,
            "stream": stream,
            "views": int(result["views"]),
            "kind": str(kind),
            "column": str(column),
            "size": str(size),
            **{name: round(float(number), 4) for name, number in zip(NUMBERS, numbers, strict=True)},
            "fit_seconds": fit,
            "card_seconds": card,
        }


POWER_CARD = Experiment(
    "delays that power cards state, and those of changes made in the streams that follow (needs recordings)",
    ("power_card",),
    measure,
    power_card_report.draw,
    needs_data=True,
)
