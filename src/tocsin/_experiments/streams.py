"""Real quiet streams: false alarms kept against those promised, and what changes are found.

Sets (recorded_sets.py says how they are cut, and on which recordings choices were made): Tennessee Eastman (reference:
the run d00; quiet: d00_te, and rows 0-159 of every other test run, of which d04's and d05's are the same and count
once; faults: rows 160 on), 3W wells (recordings with no label but 0), SMAP and MSL (training part), NAB (before the
first labelled window), SMD (training part), Daphnet, the hydraulic rig (means of cycles, the three longest segments),
IMS bearings (before row 532), C-MAPSS (the first half of each training engine's life). Targets (streams_targets.py)
were set for these. EEG, HVAC, water flow, shuttle and image patches came later, and nothing was chosen on them.

Every method has the same reference, the promised ERT, and nothing else. One that raises InputError has refused. False
alarms: a new run begins after each, and rows / ERT were promised. Charts do not ring again within 25 rows, which is
kind to them. Power, at an ERT of 500: a change begins in a row of the quiet stream drawn at random, after up to 500
quiet rows, and is found if there is an alarm within 50 rows. Shifts of 1, 2 and 4 long-run spreads, and doubled noise,
are in one column of ten (at least in one), and a stopped column is one. 'No change' is what luck finds. Charts are
tried with other limits too, to compare at equal rates of false alarms. Of Tennessee Eastman's faults 3, 9 and 15,
hardly visible, are told apart.

Results are kept by data, method, ERT and seed, not by version: after a change to a method, measure afresh.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array
from tocsin._experiments import equal_rates, recordings, streams_report
from tocsin._experiments.base import Experiment, Options, Perform, Result, Row, Tables, Unit, generator
from tocsin._experiments.equal_rates import FACTORS, heard
from tocsin._experiments.recorded_changes import KINDS, changed, long_run_spread
from tocsin._experiments.recorded_sets import SOURCES
from tocsin._experiments.recordings import Recording
from tocsin._experiments.stream_methods import CHARTS, METHODS, Method, fitted

if TYPE_CHECKING:
    from pandas import DataFrame

ERTS, POWER_ERT = (200, 500, 2000), 500
TRIALS = 6
QUICK_ERTS, QUICK_TRIALS, QUICK_RECORDINGS = (POWER_ERT,), 1, 3
LEAD, WITHIN = 500, 50
"""Quiet rows before a change at most, and rows in which it should be found."""


@dataclass(frozen=True)
class Watched(Unit):
    """A recording, and a method that learns from its reference and watches its stream.

    folder, digest: where the set is, and what it holds; the latter determines the result.
    trials: of each kind of change; with any, made faults are tried too.
    """

    folder: str
    digest: str
    source: str
    recording: str
    method: str
    ert: int
    trials: int
    seed: int

    @property
    def key(self) -> str:
        """Without the folder: data that moved are the same data."""
        return super(Watched, replace(self, folder="")).key

    @property
    def factors(self) -> tuple[float, ...]:
        """Of the limit, that are tried."""
        return FACTORS if self.trials and self.method in CHARTS else (1.0,)

    def run(self) -> Result:
        recording = recordings.read(Path(self.folder), self.source)[self.recording]
        result: Result = {
            "shape": np.array(recording.reference.shape),
            "rows": np.array(len(recording.stream) if recording.counted else 0),
            "chosen": np.array(recording.chosen),
            "refusal": np.array(""),
            "seconds": np.array(np.nan),
            "interval": np.array([np.nan, np.nan]),
            "alarms": np.zeros(len(self.factors), np.int64),
            "found": np.full((len(self.factors), len(KINDS)), np.nan),
            "delay": np.array(np.nan),
        }
        try:
            method, seconds = fitted(self.method, self.seed, recording.reference, self.ert)
        except InputError as error:
            return result | {"refusal": np.array(str(error))}
        if recording.counted:
            result["alarms"] = np.array([len(rang) for rang in heard(method, recording.stream, self.factors)])
        result |= {"seconds": np.array(seconds), "interval": np.array(method.interval() or (np.nan, np.nan))}
        if self.trials:
            result |= {"found": self._found(method, recording), "delay": np.array(delay(method, recording))}
        return result

    def _found(self, method: Method, recording: Recording) -> Float64Array:
        """The share of trials in which a change was found, (factors, kinds)."""
        rows, spread = recording.stream.to_numpy(), long_run_spread(recording.reference.to_numpy())
        if len(rows) <= WITHIN:
            return np.full((len(self.factors), len(KINDS)), np.nan)
        found = np.zeros((self.trials, len(self.factors), len(KINDS)))
        for trial in range(self.trials):
            onset = int(
                generator(self.seed, "streams", self.source, self.recording, trial).integers(1, len(rows) - WITHIN + 1)
            )
            for number, kind in enumerate(KINDS):
                rng = generator(self.seed, "streams", self.source, self.recording, trial, kind)
                lead = rows[max(0, onset - LEAD) : onset]
                tried = np.concatenate([lead, changed(kind, rows, onset, WITHIN, spread, rng)])
                frame = type(recording.stream)(tried, columns=recording.stream.columns)
                found[trial, :, number] = [(rang >= len(lead)).any() for rang in heard(method, frame, self.factors)]
        shares: Float64Array = found.mean(0)
        return shares


def delay(method: Method, recording: Recording) -> float:
    """Rows of a made fault up to and including the first alarm; infinite if there is none, NaN if no fault was made."""
    if recording.changed is None:
        return np.nan
    quiet = len(recording.stream)
    rang = method.alarms(joined(recording.stream, recording.changed))
    late = rang[rang >= quiet]
    return float(late[0] - quiet + 1) if len(late) else np.inf


def joined(*frames: DataFrame) -> DataFrame:
    """One under the other."""
    return type(frames[0])(np.concatenate([frame.to_numpy() for frame in frames]), columns=frames[0].columns)


def measure(options: Options, perform: Perform) -> Tables:
    """A row per recording, method and ERT; and what charts with other limits did, by set."""
    units = list(_units(options, recordings.find(options.data)))
    results = perform("streams", units)
    rows = [_row(unit, result) for unit, result in zip(units, results, strict=True)]
    moved = [(row, result) for row, result in zip(rows, results, strict=True) if row["trials"]]
    return {"streams": rows, "streams_limits": equal_rates.table(moved)}


def _units(options: Options, folder: Path) -> Iterator[Watched]:
    erts, trials = (QUICK_ERTS, QUICK_TRIALS) if options.quick else (ERTS, TRIALS)
    for source in SOURCES:
        digest = SOURCES[source].digest(folder)
        names = list(recordings.read(folder, source))
        if not names:
            raise InputError(
                f"{SOURCES[source].path(folder)} has no recording that is long enough. Is the copy complete?"
            )
        if options.quick:
            chosen = np.linspace(0, len(names) - 1, min(QUICK_RECORDINGS, len(names))).astype(int)
            names = [names[place] for place in chosen]
        for name in names:
            for method in METHODS:
                for ert in erts:  # what a chart learns serves them all
                    tried = trials if ert == POWER_ERT else 0
                    yield Watched(str(folder), digest, source, name, method, ert, tried, options.seed)


def _row(unit: Watched, result: Result) -> Row:
    refusal, as_learnt = str(result["refusal"]), unit.factors.index(1.0)
    low, high = (float(f"{bound:.5g}") for bound in result["interval"])
    return {
        "set": unit.source,
        "recording": unit.recording,
        "chosen": int(result["chosen"]),
        "method": unit.method,
        "ert": unit.ert,
        "reference": int(result["shape"][0]),
        "columns": int(result["shape"][1]),
        "refused": int(bool(refusal)),
        "seconds": round(float(result["seconds"]), 3),
        "rows": int(result["rows"]),
        "alarms": int(result["alarms"][as_learnt]),
        "low": low,
        "high": high,
        "trials": unit.trials,
        **{kind: round(float(share), 4) for kind, share in zip(KINDS, result["found"][as_learnt], strict=True)},
        "delay": float(result["delay"]),
        "refusal": refusal,
        "digest": unit.digest,
    }


STREAMS = Experiment(
    "false alarms on real quiet streams, and changes found there (needs recordings)",
    ("streams", "streams_limits"),
    measure,
    streams_report.draw,
    needs_data=True,
)
