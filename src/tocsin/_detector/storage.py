"""The `.tocsin` file: a zip of one JSON description and plain NumPy arrays. No pickle, so opening one runs no code.

    tocsin.json    {"format": "tocsin", "version": 5, ...}
    0.npy, ...     the arrays that it refers to as {"$array": 0}

The zip carries a checksum per member; a damaged file is refused, never half read.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.result import Calibration
from tocsin._calibration.tail import RateCurve, Tail
from tocsin._calibration.uncertainty import Errors
from tocsin._common.errors import StorageError
from tocsin._data.intake import Objects, Represented, Rows, Tabular
from tocsin._data.tables import Column, Columns
from tocsin._samplers import Blocks, Independent
from tocsin._state.outcomes import Outcome
from tocsin._statistics import LSDD, MMD, Custom, Landmarks, MeanShift
from tocsin._statistics.base import Channel
from tocsin._statistics.kernels import Gaussian

T = TypeVar("T")

VERSION = 5
DESCRIPTION = "tocsin.json"
CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Blocks,
        Calibration,
        Channel,
        Column,
        Columns,
        Custom,
        Errors,
        Gaussian,
        Independent,
        LSDD,
        Landmarks,
        MMD,
        MeanShift,
        Normaliser,
        Objects,
        Outcome,
        RateCurve,
        Represented,
        Rows,
        Tabular,
        Tail,
    )
}


def storable(kind: type[T]) -> type[T]:
    """Let files hold objects of this dataclass; decorates it."""
    CLASSES[kind.__name__] = kind
    return kind


def write(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write a description with arrays in it, atomically: a crash leaves the old file or the new one."""
    arrays: list[Any] = []
    description = json.dumps({"format": "tocsin", "version": VERSION, **_encode(content, arrays)["items"]})
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise StorageError(
            f"Cannot write {path}: it is a folder, a device or a pipe, and would be replaced. Name a file."
        )
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(zipfile.ZipInfo(DESCRIPTION), description)
                for i, array in enumerate(arrays):
                    member = io.BytesIO()
                    np.lib.format.write_array(member, array, allow_pickle=False)
                    # Without a date: the same detector makes the same file.
                    archive.writestr(zipfile.ZipInfo(f"{i}.npy"), member.getvalue())
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StorageError(
                f"Cannot write {target}: {error.strerror}. If it was there before, it still is."
            ) from error
        raise


class Content:
    """What a file holds, decoded piece by piece: a piece that names a function cannot be."""

    def __init__(self, path: str | os.PathLike[str], description: dict[str, Any], arrays: list[Any]) -> None:
        self._path, self._description, self._arrays = path, description, arrays

    def __getitem__(self, key: str) -> Any:
        try:
            return self._decode(self._description[key])
        except (KeyError, IndexError, TypeError) as error:
            raise StorageError(f"{self._path} lacks {error}: it is not a whole .tocsin file.") from error

    def _decode(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self._decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$array" in node:
            return self._arrays[node["$array"]]
        if "$function" in node:
            raise StorageError(
                f"{self._path} was made with a function of its user's ({node['$function']}), which no file can hold. "
                "Load it with the statistic that has the function: Detector.load(path, statistic=...)."
            )
        if "$tuple" in node:
            return tuple(self._decode(node["$tuple"]))
        if "$class" in node:
            return CLASSES[node["$class"]](**{name: self._decode(value) for name, value in node["fields"].items()})
        return {key: self._decode(value) for key, value in node["items"].items()}


def read(path: str | os.PathLike[str], kind: str) -> Content:
    """What `write` wrote, if it is of this kind."""
    content = _read(path)
    if content["kind"] != kind:
        found = content["kind"]
        raise StorageError(f"{path} holds a {found}, not a {kind}. Load it with {found}.load(path).")
    return content


def _read(path: str | os.PathLike[str]) -> Content:
    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read(DESCRIPTION))
            if description.get("format") != "tocsin":
                raise KeyError("format")
            if int(description["version"]) > VERSION:
                raise StorageError(
                    f"{path} was written in version {description['version']} of the file format, and this Tocsin reads "
                    f"up to {VERSION}. Upgrade Tocsin, or fit the detector again."
                )
            if int(description["version"]) == 3 and description["kind"] == "Detector":
                _from_version_3(description)
            if int(description["version"]) == 4:
                _from_version_4(description)
            if int(description["version"]) < VERSION:
                raise StorageError(
                    f"{path} was written by an earlier Tocsin, in version {description['version']} of the file format, "
                    f"and this one reads version {VERSION}. Fit the detector again."
                )
            count = sum(name.endswith(".npy") for name in archive.namelist())
            arrays = [
                np.lib.format.read_array(io.BytesIO(archive.read(f"{i}.npy")), allow_pickle=False) for i in range(count)
            ]
    except FileNotFoundError as error:
        raise StorageError(f"There is no file {path}.") from error
    except StorageError:
        raise
    except (zipfile.BadZipFile, LookupError, ValueError, TypeError, AttributeError, EOFError, RuntimeError) as error:
        raise StorageError(
            f"{path} is not a whole .tocsin file (it is damaged, cut short, or something else): {error}. "
            "Restore it from a copy, or fit the detector again."
        ) from error
    except OSError as error:
        raise StorageError(f"Cannot read {path}: {error.strerror}.") from error
    return Content(path, description, arrays)


def _from_version_3(description: dict[str, Any]) -> None:
    """What changes as a detector watches stood among what `fit` makes, and apart from its windows."""
    live, state, fitted = (description[name]["items"] for name in ("live", "state", "fitted"))
    run = {name: fitted.pop(name) for name in ("time", "alarm", "recent", "begun_with")}
    run |= {"number": fitted.pop("run"), "windows": list(state.values())}
    del description["state"], fitted["stream"]
    description |= {"version": 4, "live": list(live.values()), "run": {"items": run}}


def _from_version_4(description: dict[str, Any]) -> None:
    """Two options had other names."""
    options = description["options"]["items"]
    if "calibration" in options:
        options["mode"] = options.pop("calibration")
    if "bank" in description:
        bank = description["bank"]["items"]
        bank["ert"] = bank.pop("ert_bank")
        bank["for_all"] = None if bank["ert"] is None else bank["streams"]
    description["version"] = VERSION


def _encode(node: Any, arrays: list[Any]) -> Any:
    if isinstance(node, np.ndarray) and node.dtype.kind in "biuf":
        arrays.append(node)
        return {"$array": len(arrays) - 1}
    if type(node) in CLASSES.values():
        values = {field.name: _encode(getattr(node, field.name), arrays) for field in fields(node)}
        return {"$class": type(node).__name__, "fields": values}
    if isinstance(node, dict):
        if not all(isinstance(key, str) for key in node):
            raise StorageError(f"A dict with keys other than strings cannot be written to a file: {str(node)[:60]}.")
        return {"items": {key: _encode(value, arrays) for key, value in node.items()}}
    if isinstance(node, tuple):
        return {"$tuple": [_encode(item, arrays) for item in node]}
    if isinstance(node, list):
        return [_encode(item, arrays) for item in node]
    if isinstance(node, np.integer | np.floating | np.bool_):
        return node.item()
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if callable(node):
        return {"$function": getattr(node, "__qualname__", type(node).__name__)}
    raise StorageError(
        f"Observations of type {type(node).__name__} cannot be written to a file (numbers, strings, and lists or dicts "
        "of these can). Keep the detector in memory, or let observations be such values and convert in the kernel."
    )
