"""Recordings of real systems: read, cut, filled. Needs pandas and pyarrow.

The user's folder holds a Parquet file for each set (docs/results/streams.md says where they come from and which columns
they have); recorded_sets.py says how they are cut. Columns that do not vary in the reference, or are mostly missing
there, are left out; gaps hold the last value before them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tocsin._common.errors import InputError, MissingExtraError, Option
from tocsin._experiments.recorded_sets import SOURCES

if TYPE_CHECKING:
    from pandas import DataFrame

LEAST_REFERENCE, LEAST_STREAM = 30, 20
"""Rows; a recording with fewer is left out."""

MOST_MISSING = 0.5

SAME_QUIET = ("d04_te", "d05_te")
"""Runs of Tennessee Eastman with identical rows before the fault: false alarms of the second are not counted."""


@dataclass(frozen=True)
class Recording:
    """What a method learns from, what it must be quiet on, and, where a fault was made, the rows from its onset on.

    counted: whether its quiet stream counts, as it does not where another recording has the same.
    chosen: whether choices of the default detector were made on it.
    """

    name: str
    reference: DataFrame
    stream: DataFrame
    changed: DataFrame | None = None
    counted: bool = True
    chosen: bool = False


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
    frame = parquet(source.path(folder))
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
            chosen = source.chosen == "all" or (source.chosen == "even" and len(found) % 2 == 0)
            found[recording.name] = replace(recording, chosen=chosen)
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


def parquet(path: Path) -> DataFrame:
    """A file of recordings, whole."""
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
