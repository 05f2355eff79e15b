"""Pictures of tissue before and after a change, from a folder of the user's. Needs Pillow."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin._common.errors import InputError, MissingExtraError, Option
from tocsin._compute.arrays import Int64Array

UInt8Array = NDArray[np.uint8]

CAMELYON, BREAKHIS = "Camelyon17-WILDS", "BreaKHis 400X"

COLUMNS = ("patient", "node", "x_coord", "y_coord", "center", "split")
TRAIN_SPLIT = "0"
TRAIN_CENTRES, TEST_CENTRE = ("0", "3", "4"), "2"
"""Numbered from 0, as in the file: the hospitals that WILDS trains on, and the one that it tests on."""

ROWS, ACROSS, SIDE = 4, 7, 32
"""A BreaKHis image is a sheet of 4 x 7 tiles of 32 x 32 pixels. The file holds them as `jpeg` (bytes, end to end) and
`offsets` of each; `patient` is each image's, and `stain_group` each patient's: 0 pale, 1 eosin-rich."""
PALE, EOSIN_RICH = 0, 1


class Pictures(Protocol):
    """Pictures of one size, read when asked for: `pictures[rows]` is (n, side, side, 3), 0 to 255."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Int64Array) -> UInt8Array: ...


@dataclass(frozen=True)
class Tiles:
    """Pictures in memory."""

    tiles: UInt8Array

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, rows: Int64Array) -> UInt8Array:
        return self.tiles[rows]


@dataclass(frozen=True)
class Files:
    """Pictures in files of their own."""

    folder: Path
    names: list[str]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: Int64Array) -> UInt8Array:
        return np.stack([_picture(self.folder / self.names[row]) for row in rows])


@dataclass(frozen=True)
class Collection:
    """Where pictures were found, and of which kind they are.

    index: the file that tells what there is; data with the same `digest` of it are taken to be the same.
    """

    name: str
    index: Path
    _read: Callable[[Path], tuple[Pictures, Pictures]]

    def read(self) -> tuple[Pictures, Pictures]:
        """Those from before the change, and those from after it."""
        return self._read(self.index)

    def digest(self) -> str:
        """The same for the same data, wherever they are."""
        with self.index.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()[:16]


def find(folder: Path | None) -> Collection:
    """The pictures in a folder of the user's."""
    kinds = (
        f"a copy of {CAMELYON} (metadata.csv and patches/, or the folder above them: camelyon17_v1.0; public, from "
        "https://wilds.stanford.edu), or tiles of BreaKHis as a stand-in (histology_breakhis400/breakhis400_32.npz)"
    )
    if folder is None:
        raise InputError("This experiment needs a folder of pictures: give ", Option("data", ...), f", with {kinds}.")
    for root in (folder, folder / "camelyon17_v1.0"):
        if (root / "metadata.csv").is_file() and (root / "patches").is_dir():
            return Collection(CAMELYON, root / "metadata.csv", _read_camelyon)
    for root in (folder, folder / "histology_breakhis400"):
        if (root / "breakhis400_32.npz").is_file():
            return Collection(BREAKHIS, root / "breakhis400_32.npz", _read_breakhis)
    raise InputError(Option("data", str(folder)), f" holds no pictures that can be used. It should be {kinds}.")


def _read_camelyon(index: Path) -> tuple[Files, Files]:
    before, after = Files(index.parent, []), Files(index.parent, [])
    with index.open(newline="", encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
        if missing:
            raise InputError(f"{index} has no column {', '.join(missing)}, so it is not the index of {CAMELYON}.")
        for row in rows:
            slide = f"patient_{row['patient']}_node_{row['node']}"
            name = f"patches/{slide}/patch_{slide}_x_{row['x_coord']}_y_{row['y_coord']}.png"
            # Every centre has a 'train' split in the file; WILDS itself goes by the centre first.
            if row["center"] in TRAIN_CENTRES and row["split"] == TRAIN_SPLIT:
                before.names.append(name)
            elif row["center"] == TEST_CENTRE:
                after.names.append(name)
    return before, after


def _read_breakhis(index: Path) -> tuple[Tiles, Tiles]:
    with np.load(index, allow_pickle=False) as arrays:
        content, offsets = arrays["jpeg"].tobytes(), arrays["offsets"]
        group = np.repeat(arrays["stain_group"][arrays["patient"]], ROWS * ACROSS)
    sheets = np.stack([_picture(io.BytesIO(content[start:stop])) for start, stop in pairwise(offsets)])
    tiles = sheets.reshape(-1, ROWS, SIDE, ACROSS, SIDE, 3).swapaxes(2, 3).reshape(-1, SIDE, SIDE, 3)
    return Tiles(tiles[group == PALE]), Tiles(tiles[group == EOSIN_RICH])


def _picture(file: Path | io.BytesIO) -> UInt8Array:
    image = _image_module()
    try:
        with image.open(file) as picture:
            return np.asarray(picture.convert("RGB"))
    except OSError as error:
        raise InputError(f"Cannot read a picture: {error}. Is the copy complete?") from error


def _image_module() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("pillow", "imaging", "Reading pictures") from error
    image: ModuleType = Image
    return image
