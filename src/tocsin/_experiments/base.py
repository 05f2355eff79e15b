"""What an experiment is: pieces of work that are kept once done, tables of what they found, and figures of those."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from tocsin._compute.arrays import Array

Result = dict[str, Array]
"""What a piece of work found, as named arrays."""

Row = dict[str, str | int | float]
Table = list[Row]
Tables = dict[str, Table]
"""Rows by the name of the CSV file that holds them; all rows of a table have the same columns."""


@dataclass(frozen=True)
class Unit:
    """A piece of work. Subclasses are frozen dataclasses whose fields determine the result, the seed among them."""

    def run(self) -> Result:
        """Do it; in a process of its own."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """What it is known by, from run to run."""
        kind = type(self)
        return json.dumps({"work": f"{kind.__module__}.{kind.__qualname__}", **asdict(self)}, sort_keys=True)


@dataclass(frozen=True)
class Options:
    """What the user asked for.

    quick: a run of a minute or less on two cores, instead of the full size.
    data: the folder that holds an experiment's data, for those that need any.
    """

    seed: int = 0
    quick: bool = False
    data: Path | None = None


class Perform(Protocol):
    """Do those pieces of work that are not done yet; the results of all, in order."""

    def __call__(self, what: str, units: Sequence[Unit]) -> list[Result]: ...


@dataclass(frozen=True)
class Experiment:
    """One thing that can be reproduced.

    measure: does the work and gives tables; called again after an interruption, it finds what was done.
    draw: writes figures to a folder, from tables alone, and returns what there is to read, in Markdown.
    tables: the names of the tables that `measure` gives.
    has_figures: whether `draw` draws any, and needs matplotlib.
    needs_data: whether the user must give a folder of data.
    """

    summary: str
    tables: tuple[str, ...]
    measure: Callable[[Options, Perform], Tables]
    draw: Callable[[Tables, Path], str]
    has_figures: bool = True
    needs_data: bool = False


def generator(*parts: int | str) -> np.random.Generator:
    """Random numbers for a purpose, named by numbers and words."""
    numbers = [part if isinstance(part, int) else int.from_bytes(part.encode()) for part in parts]
    return np.random.default_rng(numbers)
