"""Own baselines: false alarms on new recordings against those promised, and changes found, with baselines and without.

A detector is fitted to half of the recordings and watches the others, each as a new stream; then the other way round. A
recording counts once: whether it rings after its baseline, where 1 - (1 - 1 / ERT)^rows of them should. Alarms in
baselines are counted apart. A change is found if an alarm comes within 50 rows of it, and none came between it and the
baseline.

Without baselines the same views watch from the first row on, at their own threshold; and, to compare what is found at
equal rates, at the lowest one with which no more recordings ring after as many first rows as with baselines. Alarms in
these first rows, which come in nearly every recording at any threshold, are not held against it there.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tocsin._common.errors import ReferenceWarning
from tocsin._compute.arrays import Float64Array
from tocsin._detector.base import altered, fitted_of
from tocsin._detector.detector import Detector
from tocsin._experiments.base import Options, Perform, Result, Row, Table, Unit, generator
from tocsin._experiments.contexts_recordings import RECORDED, folder_of, machine, moved
from tocsin._power.trials import at_run_time
from tocsin._statistics.views import Views

if TYPE_CHECKING:
    from pandas import DataFrame

ERT, BASELINE, WITHIN = 500, 50, 50
FEWER = tuple(2.0**power for power in range(-4, 13))
"""Times as rare as promised, of alarms without baselines."""

MEMORIES, RECORDINGS, COLUMNS = (0.0, 0.5, 0.9), (6, 12, 40), 4
LENGTHS, REFERENCES, NEW = (200, 501), 12, 40
QUICK_MEMORIES, QUICK_RECORDINGS, QUICK_REFERENCES, QUICK_NEW = (0.5,), (6, 12), 2, 20
LEAD = 75
"""Rows after a baseline before a simulated machine changes, at least; and up to half as many again."""

WITH, WITHOUT = "with", "without"
NONE = -1

Stream = Any
"""Rows, as a detector takes them."""


def _first(alarm: Any, start: int, stop: int | None = None) -> int:
    """The first row that rang from a row on, before another; NONE if none did."""
    rang = np.flatnonzero(alarm[start:stop])
    return start + int(rang[0]) if len(rang) else NONE


def _watched(detector: Detector, quiet: Sequence[Stream], changed: Sequence[tuple[Stream, int]]) -> Result:
    """Rows, and first alarms, of each quiet recording in and after its baseline; and before and after each change."""
    rang = [copy.copy(detector).update_many(rows).alarm for rows in quiet]
    of_changed = [(copy.copy(detector).update_many(rows).alarm, onset) for rows, onset in changed]
    return {
        "quiet": np.array([(len(own), _first(own, 0, BASELINE), _first(own, BASELINE)) for own in rang], np.int64),
        "changed": np.array(
            [(onset, _first(own, BASELINE, onset), _first(own, onset)) for own, onset in of_changed], np.int64
        ).reshape(-1, 3),
    }


def _both(
    reference: Stream, groups: Any, quiet: Sequence[Stream], changed: Sequence[tuple[Stream, int]], seed: int
) -> Result:
    """With baselines, and without, at thresholds of every rarity."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReferenceWarning)
        own = Detector(ERT, baseline=BASELINE, seed=seed).fit(reference, groups=groups, workers=1, progress=False)
        plain = Detector(ERT, Views(), seed=seed).fit(reference, groups=groups, workers=1, progress=False)
    found: Result = {"interval": np.array(own.calibration_.interval())}
    found |= {f"{WITH}_{name}": part for name, part in _watched(own, quiet, changed).items()}
    without = []
    for factor in FEWER:
        rarer = at_run_time(fitted_of(plain), factor * ERT)
        without.append(_watched(altered(plain, live=rarer.live, calibration=rarer.calibration), quiet, changed))
    return found | {f"{WITHOUT}_{name}": np.array([each[name] for each in without]) for name in without[0]}


@dataclass(frozen=True)
class SimulatedFleet(Unit):
    """A reference of machines, and new machines after it."""

    memory: float
    recordings: int
    tails: float
    new: int
    number: int
    seed: int

    def run(self) -> Result:
        parts = str(self.memory), self.recordings, str(self.tails), self.number
        rng = generator(self.seed, "own baselines", *parts)
        known, quiet = ([self._machine(rng) for _ in range(count)] for count in (self.recordings, self.new))
        onsets = BASELINE + LEAD + rng.integers(0, LEAD // 2, self.new)
        changed = [(moved(rng, rows, int(onset)), int(onset)) for rows, onset in zip(quiet, onsets, strict=True)]
        groups = np.repeat(np.arange(len(known)), [len(rows) for rows in known])
        return _both(np.concatenate(known), groups, quiet, changed, int(rng.integers(2**31)))

    def _machine(self, rng: np.random.Generator) -> Float64Array:
        return machine(rng, int(rng.integers(*LENGTHS)), COLUMNS, self.memory, self.tails or None)


@dataclass(frozen=True)
class Half(Unit):
    """Half of the recordings of a set to learn from, and the others."""

    folder: str
    name: str
    half: int
    seed: int

    @property
    def key(self) -> str:
        """Without the folder: data that moved are the same data."""
        return super(Half, replace(self, folder="")).key

    def run(self) -> Result:
        import pandas  # an extra

        recorded = RECORDED[self.name](Path(self.folder))
        mine = {name for k, name in enumerate(recorded.quiet) if k % 2 == self.half}
        known = [rows for name, rows in recorded.quiet.items() if name in mine]
        reference = pandas.concat(known, ignore_index=True)
        usable = [name for name in reference if reference[name].isna().mean() <= 0.5 and reference[name].nunique() > 1]
        quiet = [_given(rows, usable) for name, rows in recorded.quiet.items() if name not in mine]
        changed = [
            (_given(own.rows, usable), own.onset)
            for own in recorded.changed.values() if own.of not in mine and own.onset > BASELINE
        ]  # fmt: skip
        groups = np.repeat(np.arange(len(known)), [len(rows) for rows in known])
        return _both(reference[usable], groups, quiet, changed, self.seed)


def _given(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    return rows[list(names)].reset_index(drop=True)


def tables(options: Options, perform: Perform) -> dict[str, Table]:
    """A row for each law or set and method; the recorded sets where there is a folder of data."""
    fleets = list(_fleets(options))
    found = {"baselines_simulated": _rows(fleets, perform("simulated machines", fleets), _law)}
    if options.data is not None:
        places = folders(options.data)
        halves = [Half(str(places[name]), name, half, options.seed) for name in RECORDED for half in (0, 1)]
        found["baselines_recorded"] = _rows(halves, perform("recordings with levels of their own", halves), _set)
    return found


def folders(data: Path) -> dict[str, Path]:
    """Where in the user's folder each recorded set is."""
    return {name: folder_of(data, name) for name in RECORDED}


def _fleets(options: Options) -> Iterator[SimulatedFleet]:
    memories, counts = (QUICK_MEMORIES, QUICK_RECORDINGS) if options.quick else (MEMORIES, RECORDINGS)
    references, new = (QUICK_REFERENCES, QUICK_NEW) if options.quick else (REFERENCES, NEW)
    for count in reversed(counts):  # the slowest first
        for memory in memories:
            for tails in (0.0, 3.0):
                for number in range(references):
                    yield SimulatedFleet(memory, count, tails, new, number, options.seed)


def _law(unit: SimulatedFleet) -> Row:
    return {"recordings": unit.recordings, "memory": unit.memory, "tails": unit.tails}


def _set(unit: Half) -> Row:
    return {"set": unit.name}


def _rows(units: Sequence[Any], results: Sequence[Result], named: Any) -> Table:
    """With baselines, and without, at its own threshold and at an equal rate; over all units of a name."""
    together: dict[tuple[Any, ...], list[Result]] = {}
    names: dict[tuple[Any, ...], Row] = {}
    for unit, result in zip(units, results, strict=True):
        row = named(unit)
        together.setdefault(tuple(row.values()), []).append(result)
        names[tuple(row.values())] = row
    table: Table = []
    for place, found in together.items():
        own = _summed(found, WITH, None)
        table.append(names[place] | {"method": WITH, "fewer": 1.0} | own)
        without = [_summed(found, WITHOUT, k) for k in range(len(FEWER))]
        rates = [int(row["rang"]) for row in without]
        equal = next((k for k, rang in enumerate(rates) if rang <= int(own["rang"])), len(FEWER) - 1)
        for k in dict.fromkeys((FEWER.index(1.0), equal)):
            table.append(names[place] | {"method": WITHOUT, "fewer": FEWER[k]} | without[k])
    return table


def _summed(found: Sequence[Result], method: str, level: int | None) -> Row:
    def all_of(name: str) -> Any:
        parts = [result[f"{method}_{name}"] for result in found]
        return np.concatenate([part if level is None else part[level] for part in parts])

    quiet, changed = all_of("quiet"), all_of("changed")
    expected = 1 - (1 - 1 / ERT) ** (quiet[:, 0] - BASELINE)
    silent = changed[changed[:, 1] == NONE]
    delays = np.where(silent[:, 2] == NONE, np.inf, silent[:, 2] - silent[:, 0] + 1.0)
    return {
        "quiet": len(quiet),
        "expected": round(float(expected.sum()), 1),
        "rang": int((quiet[:, 2] != NONE).sum()),
        "rang_in_baseline": int((quiet[:, 1] != NONE).sum()),
        "changed": len(changed),
        "quiet_before": len(silent),
        "found": int((delays <= WITHIN).sum()),
        "found_later": int(np.isfinite(delays).sum()),
        "median_delay": float(np.median(delays)) if len(delays) else np.nan,
    }
