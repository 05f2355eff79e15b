"""Batches of observations of any kind, and rows of numbers made of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Protocol, TypeGuard

import numpy as np

from tocsin._common.checks import is_whole
from tocsin._common.errors import InputError, Option
from tocsin._common.wording import counted
from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._data.foreign import Indexed, is_collection, is_compressible, is_indexed, is_located, is_sparse, is_tensor
from tocsin._data.validation import unmasked

FRAMES: dict[str, Callable[[ModuleType, dict[str, object]], object]] = {
    "pandas": lambda pandas, record: pandas.DataFrame([record]),
    "polars": lambda polars, record: polars.DataFrame([record]),
    "pyarrow": lambda arrow, record: arrow.Table.from_pylist([record]),
}
"""Libraries of data frames, and how each makes one of a single record."""


def count_of(batch: object) -> int:
    """How many observations there are."""
    shape = getattr(batch, "shape", None)
    if isinstance(batch, str | bytes | dict) or shape == ():
        raise _no_sequence(batch)
    if shape and isinstance(shape, tuple):
        return int(shape[0])
    if not is_collection(batch):
        raise _no_sequence(batch)
    return len(batch)


def _no_sequence(batch: object) -> InputError:
    return InputError(
        f"preprocess takes a sequence of observations, and got a {type(batch).__name__}; put a single observation "
        "into a list, or into an array with one row."
    )


def uncovered(batch: object) -> object:
    """With gaps (NaN, or None) where masks cover values: what is under a mask is no data for a step either."""
    if isinstance(batch, list | tuple) and any(isinstance(x, np.ma.MaskedArray) for x in batch):
        return [unmasked(x) for x in batch]
    return unmasked(batch) if isinstance(batch, np.ma.MaskedArray) else batch


def listed(batch: object) -> list[object]:
    """Its observations, one by one."""
    if not isinstance(batch, Iterable) and not is_collection(batch):
        raise _no_sequence(batch)
    return list(batch)


def piece_of(batch: object, start: int, stop: int) -> object:
    """Observations start..stop, as the same kind of sequence."""
    return _by_rows(batch)[start:stop]


def rows_at(batch: object, places: Int64Array) -> object:
    """The observations at these places, as the same kind of sequence."""
    if isinstance(batch, list | tuple):
        return [batch[i] for i in places]
    return batch.take(places) if _is_arrow(batch) else _by_rows(batch)[places]


def _by_rows(batch: object) -> Indexed:
    """What takes slices and places of rows."""
    if is_located(batch):
        return batch.iloc
    if is_compressible(batch):
        return batch.tocsr()
    if is_indexed(batch):
        return batch
    raise _no_sequence(batch)


class Arrow(Protocol):
    """A table of Arrow's, which has slices, but no rows by their places."""

    def take(self, places: Int64Array) -> object: ...


def _is_arrow(batch: object) -> TypeGuard[Arrow]:
    return form_of(batch) == "pyarrow"


def form_of(batch: object) -> str:
    """What kind of sequence a batch is, by name."""
    library = type(batch).__module__.partition(".")[0]
    if library in FRAMES and len(_shape(batch)) == 2:
        return library
    if is_compressible(batch):
        return "sparse"
    return {"numpy": "array", "torch": "tensor"}.get(library, "list")


def _shape(values: object) -> tuple[int, ...]:
    """Of an array or a table; () for all else."""
    shape: tuple[int, ...] = getattr(values, "shape", ())
    return shape


def batch_of_one(x: object, form: str | None) -> object:
    """A single observation as a batch of this form; of the one that suits it, if none is known."""
    if form is None:
        form = {"numpy": "array", "torch": "tensor"}.get(type(x).__module__.partition(".")[0], "list")
    if form in ("sparse", *FRAMES) and len(_shape(x)) == 2 and _shape(x)[0] == 1:
        return x
    if form in FRAMES:
        record = x.to_dict() if hasattr(x, "to_dict") else x
        if not isinstance(record, Mapping):
            raise InputError(
                f"The observation is a {type(x).__name__}, and those before were rows of a data frame; give its values "
                "by column: a dict, a Series, or a data frame of one row."
            )
        return FRAMES[form](importlib.import_module(form), dict(record))
    if form == "sparse":
        return importlib.import_module("scipy.sparse").csr_array(np.atleast_2d(numbers(x)))
    if form == "tensor":
        return importlib.import_module("torch").as_tensor(x)[None]
    if form != "array":
        return [x]
    try:
        return np.asarray(x)[None]
    except ValueError as error:
        raise InputError(
            f"The observation, a {type(x).__name__}, is no array, and those before were; give an array of the same "
            "shape."
        ) from error


def rows_of(output: object, count: int, what: str) -> Float64Array:
    """What a step gave, as a float64 array (count, width) of finite numbers."""
    try:
        array = numbers(output)
    except InputError as error:
        raise InputError(f"The preprocess step ({what}) gave no rows of numbers. ", *error.parts) from error
    if array.ndim == 0 or len(array) != count:
        given = counted(len(array), "row") if array.ndim else "a single number"
        raise InputError(
            f"The preprocess step ({what}) gave {given} for {counted(count, 'observation')}; it must give one row for "
            "each. It is called with a batch of observations, not with a single one."
        )
    if array.ndim > 2:
        raise InputError(
            f"The preprocess step ({what}) gave an array of shape {array.shape}; a detector compares rows of numbers. "
            "Flatten it: output.reshape(len(output), -1), or torch.nn.Flatten() at the end of a module; with many "
            "numbers per observation, reduce them too (PCA)."
        )
    rows = np.ascontiguousarray(array.reshape(count, -1), dtype=np.float64)
    if rows.shape[1] == 0:
        raise InputError(f"The preprocess step ({what}) gave rows without numbers; there is nothing to compare.")
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"The preprocess step ({what}) gave {rows[row, column]} in row {row + 1}, column {column + 1} "
            f"(index {row}, {column}); every number must be finite, or it would blind the detector for a whole window. "
            "See whether the observation lacks a value."
        )
    return rows


def numbers(values: object) -> Array:
    """An array of numbers from arrays, lists of arrays, tensors (of any device), sparse rows and data frames."""
    if is_sparse(values):
        values = values.toarray()
    elif is_tensor(values):
        values = values.detach().cpu().double().numpy()
    elif isinstance(values, list | tuple) and values and is_tensor(values[0]):
        values = [value.detach().cpu().double().numpy() for value in values]
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError("The observations differ in shape; resize, cut or pad them to one.") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"They are a {type(values).__name__} of type {array.dtype}; encode them as numbers.")
    return array


def finite_numbers(values: object) -> Array:
    """Observations to learn from: at least two, and none lacking a number."""
    array = numbers(values)
    if array.ndim == 0 or len(array) < 2:
        raise InputError("There are fewer than two observations to learn from; give more.")
    if not np.isfinite(array).all():
        raise InputError("Observations to learn from hold values that are not finite; drop or fill them.")
    return array


def check_sizes(what: str, **sizes: object) -> None:
    """Whole numbers from 1 on."""
    for name, size in sizes.items():
        if not is_whole(size, 1):
            raise InputError(Option(name, size, of=what), ": must be a whole number from 1 on.")
