"""What tests of representations share."""

from __future__ import annotations

import traceback
from pathlib import Path

import numpy as np

from tocsin._data.representations import restore
from tocsin._detector import storage
from tocsin.representations import Representation

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 5))
IMAGES = RNG.normal(size=(60, 6, 7))


def kept_in_a_file(representation: Representation, folder: Path) -> Representation:
    """What comes out of a `.tocsin` file."""
    storage.write(folder / "parts", {"kind": "Parts", "fitted": representation.parts()})
    return restore(storage.read(folder / "parts", "Parts")["fitted"])


def notes(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
