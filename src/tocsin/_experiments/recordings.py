"""Recordings of real systems, cut into a quiet reference and the quiet stream after it. Needs pandas and pyarrow.

The user's folder holds a Parquet file for each set (docs/results/streams.md says where they come from and which columns
they have). Reference: the first 60 % of a recording's quiet stretch, and of those the last 3000 rows at most. Stream:
the rest of it, 5000 rows at most. Columns that do not vary in the reference, or are mostly missing there, are left out;
gaps hold the last value before them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tocsin._common.errors import InputError, MissingExtraError, Option

if TYPE_CHECKING:
    from pandas import DataFrame

SHARE, MOST_REFERENCE, MOST_STREAM = 0.6, 3000, 5000
LEAST_REFERENCE, LEAST_STREAM = 30, 20
"""Rows; a recording with fewer is left out."""

MOST_MISSING = 0.5

TENNESSEE = "Tennessee Eastman"
ONSET = 160
"""The row in which Tennessee Eastman's faults begin."""
SAME_QUIET = ("d04_te", "d05_te")
"""Runs with identical rows before the fault: the false alarms of the second are not counted."""

BEARING_QUIET = 532
SEGMENTS = 3


@dataclass(frozen=True)
class Recording:
    """What a method learns from, what it must be quiet on, and, where a fault was made, the rows from its onset on.

    counted: whether its quiet stream counts, as it does not where another recording has the same.
    """

    name: str
    reference: DataFrame
    stream: DataFrame
    changed: DataFrame | None = None
    counted: bool = True


Cut = tuple[str, "DataFrame", "DataFrame", "DataFrame | None"]
"""A name, and reference, stream and changed rows as they were recorded."""


@dataclass(frozen=True)
class Source:
    """A set of recordings in a Parquet file.

    columns: the columns that are read besides the measurements.
    measured: what the names of the measurements are like, as a regular expression.
    """

    file: str
    columns: tuple[str, ...]
    measured: str
    cut: Callable[[DataFrame], Iterator[Cut]]

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


SOURCES: dict[str, Source] = {
    TENNESSEE: Source("tennessee_eastman", ("run",), r"xmeas\d+|xmv\d+", _tennessee),
    "3W wells": Source("wells_3w", ("recording", "label"), r"[PT]_.*|QGL", _wells),
    "SMAP and MSL": Source("smap_msl", ("channel", "part"), "value", _training("channel")),
    "NAB": Source("nab", ("series", "window"), "value", _nab),
    "SMD": Source("smd3", ("machine", "part"), r"m\d+", _training("machine")),
    "Daphnet": Source("daphnet_s06r02", (), "(ankle|leg|trunk)_.*", _daphnet),
    "hydraulic rig": Source("hydraulic_1hz", ("cycle", "segment"), r"TS\d|VS1|SE|CE|CP", _hydraulic),
    "IMS bearings": Source("bearing_ims2", (), r"b\d_.*", _bearing),
    "C-MAPSS": Source("cmapss_fd001", ("unit", "part"), r"set\d|s\d+", _engines),
}
"""By the names that results have for them."""


def find(folder: Path | None) -> Path:
    """The user's folder, with all files in it."""
    what = "a Parquet file for each set; docs/results/streams.md says where they come from and which columns they have"
    if folder is None:
        raise InputError("This experiment needs recordings: give ", Option("data", ...), f", a folder with {what}.")
    if not folder.is_dir():
        raise InputError(Option("data", str(folder)), f" is not a folder. It should be one with {what}.")
    missing = [path.name for source in SOURCES.values() if not (path := source.path(folder)).is_file()]
    if missing:
        raise InputError(Option("data", str(folder)), f" has no {', '.join(missing)}. It needs {what}.")
    return folder


@lru_cache(maxsize=1)  # work comes set by set
def read(folder: Path, name: str) -> dict[str, Recording]:
    """The recordings of a set in which anything varies, by name."""
    source = SOURCES[name]
    frame = _parquet(source.path(folder))
    measured = [column for column in frame.columns if re.fullmatch(source.measured, column)]
    missing = [column for column in source.columns if column not in frame.columns]
    if missing or not measured:
        raise InputError(
            f"{source.path(folder)} has no column {', '.join(missing) or source.measured}. "
            "docs/results/streams.md says what it should have."
        )
    kept = frame[[*source.columns, *measured]]
    found: dict[str, Recording] = {}
    for cut in source.cut(kept):
        recording = _filled(*cut, measured)
        if recording is not None:
            found[recording.name] = recording
    return found


def _filled(
    name: str, reference: DataFrame, stream: DataFrame, changed: DataFrame | None, measured: list[str]
) -> Recording | None:
    if len(reference) < LEAST_REFERENCE or len(stream) < LEAST_STREAM:
        return None
    numbers = reference[measured].astype("float64")
    usable = (numbers.isna().mean() <= MOST_MISSING) & (numbers.nunique() > 1)
    columns = [column for column in measured if usable[column]]
    if not columns:
        return None
    parts = [part[columns].astype("float64") for part in (reference, stream, changed) if part is not None]
    whole = _pandas().concat(parts, ignore_index=True).ffill().bfill()
    ends = (len(reference), len(reference) + len(stream))
    before, quiet, after = (
        rows.reset_index(drop=True) for rows in (whole[: ends[0]], whole[ends[0] : ends[1]], whole[ends[1] :])
    )
    return Recording(name, before, quiet, None if changed is None else after, name != SAME_QUIET[1])


def _parquet(path: Path) -> DataFrame:
    try:
        return _pandas().read_parquet(path)
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data", "Reading recordings") from error
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {path}: {error}. Is the copy complete?") from error


def _pandas() -> ModuleType:
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("pandas", None, "Reading recordings") from error
    module: ModuleType = pandas
    return module
