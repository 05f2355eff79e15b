"""The `.tocsin` file: a zip of one JSON description and plain NumPy arrays. No pickle, so opening one runs no code.

    tocsin.json    {"format": "tocsin", "version": 7, ...}
    0.npy, ...     the arrays that it refers to as {"$array": 0}

The zip carries a checksum per member; a damaged file is refused, never half read. What is read is looked at as a whole
(`declared`, `checking`) before any of it is used: a file that somebody made up is refused too, or is a detector.
"""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from tocsin._common.errors import InputError, StorageError
from tocsin._common.files import replacing, written_to
from tocsin._detector.archive import DESCRIPTION, MOST_MEMBERS, members, must_be_modest, must_be_stored, read_array
from tocsin._detector.declared import FIELDS, made
from tocsin._detector.schema import Rule, Whole, Wrong, must, text

VERSION = 7

PARTS = {
    "format", "version", "kind", "options", "names", "statistic", "fitted", "live", "run", "bank", "source",
    "power", "monitor",
}  # fmt: skip
"""Of a file: what is none of them would be read, and take memory, for nobody."""

MOST_OF_A_NAME = 40
"""Letters of a name, in a place that is told: places within places have the names of all that they are in."""


def write(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write a description with arrays in it, atomically: a crash leaves the old file or the new one."""
    arrays: list[Any] = []
    described = {"format": "tocsin", "version": VERSION, **_encode(content, arrays)["items"]}
    description = json.dumps(described).encode()
    _must_be_readable(description, arrays)
    try:
        target = written_to(path)
        if target.exists() and not target.is_file():
            raise StorageError(
                f"Cannot write {path}: it is a folder, a device or a pipe, and would be replaced. Name a file."
            )
        with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo(DESCRIPTION), description)
            for i, array in enumerate(arrays):
                # Without a date: the same detector makes the same file.
                with archive.open(zipfile.ZipInfo(f"{i}.npy"), "w", force_zip64=array.nbytes >= 2**31) as member:
                    np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
    except InputError as error:
        raise StorageError(*error.parts) from error
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {error.strerror}. If it was there before, it still is.") from error


def _must_be_readable(description: bytes, arrays: list[Any]) -> None:
    """Refuse now what no file could be read from."""
    try:
        must_be_modest(description, len(description) + sum(array.nbytes for array in arrays))
        if len(arrays) >= MOST_MEMBERS:
            raise Wrong("the number of arrays", len(arrays), f"less than {MOST_MEMBERS}")
    except Wrong as error:
        raise StorageError(
            f"The detector cannot be written to a file: {error}. Its observations are objects of many small parts; "
            "keep it in memory, or let observations be rows of numbers, strings, or fewer."
        ) from error


class Content:
    """What a file holds, decoded piece by piece: a piece that names a function cannot be."""

    def __init__(self, path: str | os.PathLike[str], description: dict[str, Any], arrays: list[Any]) -> None:
        self.path, self._description, self._arrays = path, description, arrays
        self._decoded: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._description:
            raise StorageError(f"{self.path} lacks {key!r}: it is not a whole .tocsin file.")
        if key not in self._decoded:
            with self.explained():
                self._decoded[key] = self._decode(self._description[key], key)
        return self._decoded[key]

    def __contains__(self, key: str) -> bool:
        return key in self._description

    def part(self, key: str, rule: Rule) -> Any:
        """What a file holds by this name, if it keeps the rule."""
        value = self[key]
        with self.explained():
            rule(value, key)
        return value

    @contextmanager
    def explained(self) -> Iterator[None]:
        """What is wrong with the content is told as an error of the file."""
        try:
            yield
        except Wrong as error:
            raise StorageError(
                f"{self.path} is not a whole .tocsin file (it is damaged, or was not made by Tocsin): {error}. "
                "Restore it from a copy, or fit the detector again."
            ) from error
        except InputError as error:
            raise StorageError(f"{self.path} holds what no detector can have: ", *error.parts) from error

    def _decode(self, node: Any, at: str) -> Any:
        """In place: a copy would take as much memory again."""
        if isinstance(node, list):
            for i, item in enumerate(node):
                node[i] = self._decode(item, at)
            return node
        if not isinstance(node, dict):
            return node
        kind = next((name for name in FORMS if name in node), None)
        if kind is None or node.keys() != FORMS[kind]:
            raise Wrong(at, sorted(map(str, node)), "of a form that is written")
        value = node[kind]
        if kind == "$array":
            return self._array(value, at)
        if kind == "$function":
            raise StorageError(
                f"{self.path} was made with a function of its user's ({value}), which no file can hold. "
                "Load it with the statistic that has the function: Detector.load(path, statistic=...)."
            )
        if kind == "$tuple":
            if not isinstance(value, list):
                raise Wrong(at, value, "a list")
            return tuple(self._decode(value, at))
        items = node["fields"] if kind == "$class" else value
        if not isinstance(items, dict):
            raise Wrong(at, items, "a record")
        for key, item in items.items():
            items[key] = self._decode(item, f"{at}.{key[:MOST_OF_A_NAME]}")
        return made(value, items, at) if kind == "$class" else items

    def _array(self, number: object, at: str) -> Any:
        """Each is there once, and belongs to one place."""
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(self._arrays):
            raise Wrong(at, number, f"the number of an array, of {len(self._arrays)}")
        array, self._arrays[number] = self._arrays[number], None
        if array is None:
            raise Wrong(at, number, "the number of an array that is at no other place")
        return array


FORMS = {
    "$array": {"$array"},
    "$function": {"$function"},
    "$tuple": {"$tuple"},
    "$class": {"$class", "fields"},
    "items": {"items"},
}
"""Of dicts in a description."""


def read(path: str | os.PathLike[str], kind: str) -> Content:
    """What `write` wrote, if it is of this kind."""
    content = _read(path)
    found = content.part("kind", text)
    if found != kind:
        raise StorageError(f"{path} holds a {found[:40]}, not a {kind}. Load it with {found[:40]}.load(path).")
    return content


def _read(path: str | os.PathLike[str]) -> Content:
    try:
        mode = Path(path).stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise StorageError(f"Cannot read {path}: it is a device or a pipe. Name a file.")
        with Path(path).open("rb") as file:
            count = members(file)
            with zipfile.ZipFile(file) as archive:
                size = os.fstat(file.fileno()).st_size
                must_be_stored(archive, count, size)
                description = _described(_parsed(archive.read(DESCRIPTION), size), path)
                arrays = [read_array(archive, f"{i}.npy") for i in range(count - 1)]
    except FileNotFoundError as error:
        raise StorageError(f"There is no file {path}.") from error
    except StorageError:
        raise
    except (
        Wrong,
        zipfile.BadZipFile,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        EOFError,
        RuntimeError,
    ) as error:
        raise StorageError(
            f"{path} is not a whole .tocsin file (it is damaged, cut short, or something else): {error}. "
            "Restore it from a copy, or fit the detector again."
        ) from error
    except OSError as error:
        raise StorageError(f"Cannot read {path}: {error.strerror}.") from error
    return Content(path, description, arrays)


def _parsed(content: bytes, size: int) -> Any:
    must_be_modest(content, size)
    letters = content.decode("ascii")
    del content  # not to be there twice while values are made of it
    return json.loads(letters)


def _described(description: Any, path: str | os.PathLike[str]) -> dict[str, Any]:
    """The description, as this version has it."""
    if not isinstance(description, dict) or description.get("format") != "tocsin":
        raise KeyError("format")
    version = description["version"]
    Whole(0, 2**31)(version, "version")
    if version > VERSION:
        raise StorageError(
            f"{path} was written in version {version} of the file format, and this Tocsin reads up to {VERSION}. "
            "Upgrade Tocsin, or fit the detector again."
        )
    if version == 3 and description["kind"] == "Detector":
        _from_version_3(description)
    if description["version"] == 4:
        _from_version_4(description)
    if description["version"] == 5:
        _from_version_5(description)
    if description["version"] == 6:
        _from_version_6(description)
    if description["version"] < VERSION:
        raise StorageError(
            f"{path} was written by an earlier Tocsin, in version {version} of the file format, "
            f"and this one reads version {VERSION}. Fit the detector again."
        )
    strange = sorted(description.keys() - PARTS)
    must(not strange, "the description", strange, "without these")
    return description


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
    description["version"] = 5


def _from_version_5(description: dict[str, Any]) -> None:
    """Runs met all of the reference from their first observation on."""
    if "run" in description:
        description["run"]["items"]["left"] = None
    description["version"] = 6


def _from_version_6(description: dict[str, Any]) -> None:
    """Nothing was heard but statistics."""
    if "run" in description:
        description["run"]["items"]["heard"] = None
    if "fitted" in description:
        description["fitted"]["items"]["hears"] = False
    if "bank" in description:
        description["bank"]["items"]["news"] = None
    description["version"] = VERSION


def _encode(node: Any, arrays: list[Any]) -> Any:
    if isinstance(node, np.ndarray) and node.dtype.kind in "biuf":
        arrays.append(node)
        return {"$array": len(arrays) - 1}
    if type(node) in FIELDS:
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
