"""Recorded streams with a context that people would name: the hour, the weather, the working mode.

A Parquet file each, anywhere in the user's folder; docs/results/contexts.md says where they come from. A cut is a
reference, and the rows after it. Choices were made on the hire of bicycles; the others are only reported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tocsin._common.errors import InputError, Option
from tocsin._compute.arrays import Int64Array
from tocsin._data.tables import Table, as_table
from tocsin._experiments.recordings import parquet

if TYPE_CHECKING:
    from pandas import DataFrame

REFERENCE, STREAM = 2000, 3000

CYCLES = 20
"""Of the hydraulic rig in each state of its cooler: half of them are reference."""


class Cut(NamedTuple):
    """A reference, its groups if it has any, and the stream after it."""

    given: tuple[str, ...]
    watched: tuple[str, ...]
    reference: Table
    stream: Table
    groups: Int64Array | None = None


@dataclass(frozen=True)
class Set:
    """A recorded set: a file, its context, what is watched, and the rows of a frame that are of use."""

    file: str
    given: tuple[str, ...]
    watched: tuple[str, ...]
    rows: Callable[[DataFrame], DataFrame]
    cuts: int = 1

    def path(self, folder: Path) -> Path | None:
        """Where it is."""
        return next(iter(sorted(folder.rglob(f"{self.file}.parquet"))), None)

    def digest(self, folder: Path) -> str:
        """The same for the same data, wherever they are."""
        path = self.path(folder)
        assert path is not None
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()[:16]


def find(folder: Path | None) -> Path:
    """The user's folder, with all files in it."""
    what = "a Parquet file for each set; docs/results/contexts.md says which"
    if folder is None:
        raise InputError(
            "This experiment needs recorded streams: give ", Option("data", ...), f", a folder with {what}."
        )
    missing = dict.fromkeys(f"{own.file}.parquet" for own in SETS.values() if own.path(folder) is None)
    if missing:
        raise InputError(Option("data", str(folder)), f" has no {', '.join(missing)}. It needs {what}.")
    return folder


def cut(folder: Path, name: str, place: int) -> Cut:
    """One of a set's cuts."""
    own, frame = SETS[name], _read(folder, name)
    columns = [*own.given, *own.watched]
    if name == RIG:
        first = frame["turn"].to_numpy() < CYCLES // 2
        groups = frame.loc[first, "cooler"].to_numpy(np.int64)
        return Cut(own.given, own.watched, _table(frame[first][columns]), _table(frame[~first][columns]), groups)
    room = max(len(frame) - REFERENCE - STREAM, 0)
    start = 0 if own.cuts == 1 else room * place // (own.cuts - 1)
    rows, middle = frame[columns], start + REFERENCE
    return Cut(own.given, own.watched, _table(rows[start:middle]), _table(rows[middle : middle + STREAM]))


@lru_cache(maxsize=1)  # work comes set by set
def _read(folder: Path, name: str) -> DataFrame:
    path = SETS[name].path(folder)
    assert path is not None
    return SETS[name].rows(parquet(path))


def _table(frame: DataFrame) -> Table:
    table = as_table(frame.reset_index(drop=True))
    assert table is not None
    return table


def _all(frame: DataFrame) -> DataFrame:
    return frame


def _series(name: str) -> Callable[[DataFrame], DataFrame]:
    """One of NAB's, up to its first labelled window, or at least as long as a reference."""

    def rows(frame: DataFrame) -> DataFrame:
        own = frame[frame["series"] == name]
        return own[own["window"] == 0]

    return rows


def _air(frame: DataFrame) -> DataFrame:
    """Without rows in which the sensors were off."""
    return frame[frame["PT08_S1_CO"].notna()]


def _rig(frame: DataFrame) -> DataFrame:
    """As many load cycles in each state of the cooler, early in its longest stretch, but after it has settled."""
    found = []
    for _, own in frame.groupby("cooler"):
        segment = own["segment"].value_counts().idxmax()
        cycles = own[own["segment"] == segment]
        turn = cycles["cycle"] - cycles["cycle"].min() - 100
        found.append(cycles.assign(turn=turn)[(turn >= 0) & (turn < CYCLES)])
    import pandas

    return pandas.concat(found)


RIG = "hydraulic rig"
SENSORS = ("PT08_S1_CO", "PT08_S2_NMHC", "PT08_S3_NOx", "PT08_S4_NO2", "PT08_S5_O3")
SETS: dict[str, Set] = {
    "bicycles, by hour and day": Set("bike_hour", ("hr", "workingday"), ("cnt",), _all, 6),
    "bicycles, by time": Set("bike_hour", ("time",), ("cnt",), _all, 6),
    "air quality": Set("air_quality", ("time", "T", "RH"), SENSORS, _air, 3),
    "electricity": Set("elec2", ("period", "day"), ("nswdemand", "nswprice"), _all, 6),
    "taxis": Set("nab", ("time",), ("value",), _series("realKnownCause/nyc_taxi"), 3),
    "machine": Set("nab", ("time",), ("value",), _series("realKnownCause/machine_temperature_system_failure"), 5),
    RIG: Set("hydraulic_1hz", ("cooler", "second"), ("TS1", "TS2", "TS3", "TS4", "VS1", "CE", "CP"), _rig),
}
"""By the names that results have for them."""
