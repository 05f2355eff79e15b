"""Sets of recordings of real systems: which of their rows are quiet, and how those are cut into reference and stream.

Reference: the first 60 % of a recording's quiet stretch, and of those the last 3000 rows at most. Stream: the rest of
it, 5000 rows at most.

Choices of the default detector were made on Tennessee Eastman, on SMD, and on every other recording of the wells, of
the spacecraft and of NAB: those with even places among the names. All others are only reported. What is quiet in the
sets that were added later: rows with eyes open, or closed, for 600 rows at least; a ventilation unit, of which nothing
is labelled; the longest stretch of a pipe's flow without a labelled event; rows of a shuttle that are not anomalies,
and patches of images, both in random order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pandas import DataFrame

SHARE, MOST_REFERENCE, MOST_STREAM = 0.6, 3000, 5000

TENNESSEE = "Tennessee Eastman"
ONSET = 160
"""The row in which Tennessee Eastman's faults begin."""

BEARING_QUIET = 532
SEGMENTS = 3
EYES = 600
"""Rows of the shortest stretch with eyes open, or closed, that is taken."""

Cut = tuple[str, "DataFrame", "DataFrame", "DataFrame | None"]
"""A name, and reference, stream and changed rows as they were recorded."""


@dataclass(frozen=True)
class Source:
    """A set of recordings in a Parquet file.

    columns: the columns that are read besides the measurements.
    measured: what the names of the measurements are like, as a regular expression.
    chosen: on which of its recordings choices of the default detector were made: all, those with even places, or none.
    asked: whether targets were set for it; other sets were added to see how far what was found goes.
    """

    file: str
    columns: tuple[str, ...]
    measured: str
    cut: Callable[[DataFrame], Iterator[Cut]]
    chosen: Literal["all", "even", "none"] = "none"
    asked: bool = True

    def path(self, folder: Path) -> Path:
        """Where it is."""
        return folder / f"{self.file}.parquet"

    def digest(self, folder: Path) -> str:
        """The same for the same data, wherever they are."""
        with self.path(folder).open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()[:16]


def _halves(name: str, quiet: DataFrame) -> Cut:
    count = int(len(quiet) * SHARE)
    return name, quiet[max(0, count - MOST_REFERENCE) : count], quiet[count : count + MOST_STREAM], None


def _by(column: str, frame: DataFrame) -> Iterator[tuple[str, DataFrame]]:
    for name, rows in frame.groupby(column, observed=True):
        yield str(name), rows


def _tennessee(frame: DataFrame) -> Iterator[Cut]:
    runs = dict(_by("run", frame))
    for name, rows in runs.items():
        if name == "d00_te":
            yield name, runs["d00"], rows, None
        elif name.endswith("_te"):
            yield name, runs["d00"], rows[:ONSET], rows[ONSET:]


def _wells(frame: DataFrame) -> Iterator[Cut]:
    for name, rows in _by("recording", frame):
        if (rows["label"] == 0).all():
            yield _halves(name, rows)


def _training(column: str) -> Callable[[DataFrame], Iterator[Cut]]:
    def cut(frame: DataFrame) -> Iterator[Cut]:
        for name, rows in _by(column, frame[frame["part"] == "train"]):
            yield _halves(name, rows)

    return cut


def _nab(frame: DataFrame) -> Iterator[Cut]:
    for name, rows in _by("series", frame):
        labelled = rows["window"].to_numpy().nonzero()[0]
        yield _halves(name, rows[: labelled[0]] if len(labelled) else rows)


def _daphnet(frame: DataFrame) -> Iterator[Cut]:
    yield _halves("S06R02", frame)


def _hydraulic(frame: DataFrame) -> Iterator[Cut]:
    cycles = frame.groupby("cycle", as_index=False).mean()
    longest = cycles["segment"].value_counts().index[:SEGMENTS]
    for segment in sorted(longest):
        rows = cycles[cycles["segment"] == segment]
        yield _halves(f"cycles from {rows['cycle'].iloc[0]}", rows)


def _bearing(frame: DataFrame) -> Iterator[Cut]:
    yield _halves("test 2", frame[:BEARING_QUIET])


def _engines(frame: DataFrame) -> Iterator[Cut]:
    for name, rows in _by("unit", frame[frame["part"] == "train"]):
        yield _halves(f"engine {name}", rows[: len(rows) // 2])


def _eeg(frame: DataFrame) -> Iterator[Cut]:
    for name, rows in _by("segment", frame[frame["artefact"] == 0]):
        if len(rows) >= EYES:
            yield _halves(f"segment {name}", rows)


def _ventilation(frame: DataFrame) -> Iterator[Cut]:
    for name, rows in _by("unit", frame):
        yield _halves(f"unit {name}", rows)


def _flow(frame: DataFrame) -> Iterator[Cut]:
    """The longest stretch without a labelled event."""
    events = frame["window"].cumsum().where(frame["window"] == 0)
    yield _halves("longest stretch", frame[events == events.value_counts().index[0]])


def _shuttle(frame: DataFrame) -> Iterator[Cut]:
    yield _halves("usual rows", frame[frame["anomaly"] == 0])


def _patches(frame: DataFrame) -> Iterator[Cut]:
    yield _halves("all kinds", frame)


SOURCES: dict[str, Source] = {
    TENNESSEE: Source("tennessee_eastman", ("run",), r"xmeas\d+|xmv\d+", _tennessee, "all"),
    "3W wells": Source("wells_3w", ("recording", "label"), r"[PT]_.*|QGL", _wells, "even"),
    "SMAP and MSL": Source("smap_msl", ("channel", "part"), "value", _training("channel"), "even"),
    "NAB": Source("nab", ("series", "window"), "value", _nab, "even"),
    "SMD": Source("smd3", ("machine", "part"), r"m\d+", _training("machine"), "all"),
    "Daphnet": Source("daphnet_s06r02", (), "(ankle|leg|trunk)_.*", _daphnet),
    "hydraulic rig": Source("hydraulic_1hz", ("cycle", "segment"), r"TS\d|VS1|SE|CE|CP", _hydraulic),
    "IMS bearings": Source("bearing_ims2", (), r"b\d_.*", _bearing),
    "C-MAPSS": Source("cmapss_fd001", ("unit", "part"), r"set\d|s\d+", _engines),
    "EEG": Source("eeg_eye_state", ("segment", "artefact"), "[A-Z].*", _eeg, asked=False),
    "HVAC": Source("hvac", ("unit",), "vibration", _ventilation, asked=False),
    "water flow": Source("water_flow", ("window",), "flow", _flow, asked=False),
    "shuttle": Source("shuttle", ("anomaly",), r"f\d+", _shuttle, asked=False),
    "image patches": Source("image_segments", (), ".*_.*", _patches, asked=False),
}
"""By the names that results have for them."""
