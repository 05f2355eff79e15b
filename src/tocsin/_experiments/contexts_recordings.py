"""Sets of recordings that have levels of their own, and fleets that are simulated: quiet ones, and such with a change.

Wells (3W): recordings with no label but 0 are quiet; the change is a recording with a fault, from its onset on.
C-MAPSS: the first hundred flights of each training engine are quiet, what follows wears out; no onset is known.
Japanese vowels: utterances of one speaker joined to 250 frames are quiet, and another speaker is put in after 150.
Simulated machines differ in level (20 spreads), in the logarithm of their spread (0.5) and in their memory; one of
their columns moves by two spreads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tocsin._common.errors import InputError, Option
from tocsin._compute.arrays import Float64Array
from tocsin._experiments.base import generator
from tocsin._experiments.recordings import parquet

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS, FLIGHTS, FRAMES, OTHER_AT = 1000, 100, 250, 150
LEVELS, SPREADS, MEMORIES, MOVE = 20.0, 0.5, 0.25, 2.0
SETTLING = 200
LONGEST_MEMORY = 0.97


@dataclass(frozen=True)
class Changed:
    """A recording with a change from a row on. of: the quiet one that it begins with, if any."""

    rows: DataFrame
    onset: int
    of: str | None = None


@dataclass(frozen=True)
class Recorded:
    """Quiet recordings, and changed ones, by name."""

    quiet: dict[str, DataFrame]
    changed: dict[str, Changed]


def _wells(folder: Path) -> Recorded:
    frame = parquet(folder / "wells_3w.parquet")
    names = [name for name in frame.columns if name[:2] in ("P_", "T_") or name == "QGL"]
    found = Recorded({}, {})
    for name, rows in frame.groupby("recording", observed=True):
        measured, label = rows[names].astype(float).ffill().bfill().reset_index(drop=True), rows["label"].to_numpy()
        if (label == 0).all():
            found.quiet[str(name)] = measured[:MOST_ROWS]
        elif (label > 0).any():
            found.changed[str(name)] = Changed(measured, int((label > 0).argmax()))
    return found


def _engines(folder: Path) -> Recorded:
    frame = parquet(folder / "cmapss_fd001.parquet")
    frame = frame[frame["part"] == "train"]
    names = [name for name in frame.columns if name.startswith("s") and frame[name].nunique() > 1]
    found = Recorded({}, {})
    for unit, rows in frame.groupby("unit"):
        measured = rows[names].astype(float).reset_index(drop=True)
        found.quiet[str(unit)] = measured[:FLIGHTS]
        found.changed[str(unit)] = Changed(measured, FLIGHTS, str(unit))
    return found


def _vowels(folder: Path) -> Recorded:
    import pandas  # an extra

    frame = parquet(folder / "japanese_vowels.parquet")
    names = [name for name in frame.columns if name.startswith("lpc")]
    rng, found = generator("vowels"), Recorded({}, {})
    for speaker, own in frame.groupby("speaker"):
        said = [rows[names].astype(float) for _, rows in own.groupby("recording")]
        pieces, count = list[Any](), 0
        for k in rng.permutation(len(said)).tolist():
            pieces.append(said[k])
            if sum(map(len, pieces)) >= FRAMES:
                found.quiet[f"{speaker}-{count}"] = pandas.concat(pieces, ignore_index=True)
                pieces, count = [], count + 1
    everyone = list(found.quiet)
    for name in everyone:
        others = [other for other in everyone if other.split("-")[0] != name.split("-")[0]]
        other = found.quiet[others[int(rng.integers(len(others)))]]
        joined = pandas.concat([found.quiet[name][:OTHER_AT], other], ignore_index=True)
        found.changed[name] = Changed(joined, OTHER_AT, name)
    return found


FILES = {"3W wells": "wells_3w", "C-MAPSS": "cmapss_fd001", "Japanese vowels": "japanese_vowels"}
"""Of each set, a Parquet file."""


def folder_of(data: Path, name: str) -> Path:
    """Where in the user's folder a set is."""
    found = sorted(data.rglob(f"{FILES[name]}.parquet"))
    if not found:
        raise InputError(
            Option("data", str(data)), f" has no {FILES[name]}.parquet. It needs the files of docs/results/contexts.md."
        )
    return found[0].parent


RECORDED: dict[str, Callable[[Path], Recorded]] = {
    "3W wells": _wells, "C-MAPSS": _engines, "Japanese vowels": _vowels,
}  # fmt: skip
"""Choices were made on the wells; the others are only reported."""


def machine(rng: np.random.Generator, count: int, columns: int, memory: float, tails: float | None) -> Float64Array:
    """Rows of a machine with a level, a spread and a memory of its own. tails: degrees of freedom; None: Gaussian."""
    own = float(np.clip(np.tanh(np.arctanh(memory) + MEMORIES * rng.normal()), -LONGEST_MEMORY, LONGEST_MEMORY))
    shape = (count + SETTLING, columns)
    rows = rng.normal(size=shape) if tails is None else rng.standard_t(tails, size=shape)
    for t in range(1, len(rows)):
        rows[t] += own * rows[t - 1]
    level, spread = LEVELS * rng.normal(size=columns), np.exp(SPREADS * rng.normal(size=columns))
    return np.asarray(level + spread * np.sqrt(1 - own**2) * rows[SETTLING:])


def moved(rng: np.random.Generator, rows: Float64Array, onset: int) -> Float64Array:
    """The same rows; from the onset on, one column is higher or lower."""
    found, column = rows.copy(), int(rng.integers(rows.shape[1]))
    found[onset:, column] += MOVE * rows[:, column].std() * rng.choice([-1.0, 1.0])
    return found
