"""The only place where input is coerced or refused. Errors name the value, the rule, the reason and the remedy.

A long file, since it is the only place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Sized
from typing import Literal, cast, overload

import numpy as np

from tocsin._common.checks import is_finite, is_number, is_whole
from tocsin._common.errors import InputError, Option
from tocsin._common.seeds import LARGEST as LARGEST_SEED
from tocsin._common.wording import counted, shown
from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._data.foreign import Tensor, is_sparse, is_tensor
from tocsin._samplers import Blocks, Independent, Sampler

DEFAULT_WINDOWS = (8, 25, 100)

POINTS_PER_WINDOW = 10
"""A default window is used when the reference has this many times its points: wider ones loosen the promise."""

MOST_ENTRIES = 2**29
"""Of a sparse matrix with its zeros: 4 GiB."""

FEW = 20
"""Numbers that Python adds up before NumPy has begun."""

VALUE_COPIES = 20
"""A reference in which each value occurs this often, on average, is discrete."""


@overload
def reference_points(reference: object, *, objects_allowed: Literal[False]) -> Float64Array: ...


@overload
def reference_points(reference: object, *, objects_allowed: bool) -> Float64Array | list[object]: ...


def reference_points(reference: object, *, objects_allowed: bool) -> Float64Array | list[object]:
    """The reference as a float64 array (N, d), or, for statistics that take them, a list of objects."""
    if is_sparse(reference):
        reference = plain_array(reference)
    sizeless = not isinstance(reference, Sized) or (isinstance(reference, np.ndarray) and reference.ndim == 0)
    if isinstance(reference, str | bytes | dict) or sizeless:
        raise InputError(
            f"The reference is a {type(reference).__name__}; it must be a sequence of observations: an array with one "
            "row per observation, or a list."
        )
    if len(cast(Sized, reference)) == 0:
        raise InputError("The reference is empty; it must hold observations from the time when all was well.")
    try:
        array = plain_array(reference)
        numeric = array.dtype.kind in "biuf" and array.ndim >= 1
    except ValueError:
        numeric = False
    if numeric:
        return _finite(_rows(array), "The reference")
    if objects_allowed:
        return list(cast(Iterable[object], reference))
    raise InputError(
        f"The reference holds {_describe(reference)}, not numbers. This statistic compares rows of numbers: encode the "
        "columns as numbers, or give ",
        Option("kernel", ..., of="MMD"),
        " a function that compares such observations.",
    )


@overload
def observations(block: object, width: int) -> Float64Array: ...


@overload
def observations(block: object, width: None) -> list[object]: ...


def observations(block: object, width: int | None) -> Float64Array | list[object]:
    """New observations as a float64 array (n, width), or as a list where the reference is one (width None)."""
    if width is None:
        if isinstance(block, str | bytes | dict) or not isinstance(block, Sized):
            raise InputError(
                f"update_many takes a sequence of observations, and got a {type(block).__name__}; "
                "for a single observation use update."
            )
        return list(cast(Iterable[object], block))
    array = _numbers(block)
    if array.ndim == 1 and (width == 1 or array.size == 0):
        array = array.reshape(-1, width)
    if array.ndim != 2:
        raise InputError(
            f"update_many takes rows of {width} numbers, and got an array of shape {array.shape}; "
            "for a single observation use update."
        )
    return _finite(_of_width(array, width), "The block")


def observation(x: object, width: int) -> Float64Array:
    """One observation as an array (1, width)."""
    array = _numbers(x)
    if array.ndim != 1:
        array = array.reshape(-1) if array.size == width or array.ndim == 0 else array
    if array.shape != (width,):
        raise InputError(
            f"The observation has shape {array.shape}; the reference has {counted(width, 'column')}, and it must have "
            "as many." + (" For several observations at once use update_many." if array.ndim == 2 else "")
        )
    # The sum, of squares if there are many, is finite if all are; only when it is not (or overflows) is the culprit
    # looked for. vdot: dot would warn of it, and to tell it not to takes longer than all this.
    if not math.isfinite(sum(array.tolist()) if width <= FEW else np.vdot(array, array)):
        _finite(array[None, :], "The observation")
    return array[None, :]


def expected_run_time(ert: object, widest: int) -> float:
    number = _number("ert", ert)
    if not math.isfinite(number):
        raise InputError(
            Option("ert", ert), " is not finite; it must be a number of observations between false alarms."
        )
    least = max(2.0, widest / 3)
    if number < least:
        raise InputError(
            Option("ert", ert),
            f" is too small (at least {least:.4g} for windows up to {widest}): nearly every run would end before the "
            "widest window has been seen in full. Ask for a longer expected run time, or shorter windows.",
        )
    return number


def windows_given(window: object) -> tuple[int, ...]:
    """A window or several, sorted, each at least 2."""
    several = isinstance(window, Iterable) and getattr(window, "ndim", 1) > 0
    values: list[object] = list(cast(Iterable[object], window)) if several else [window]
    windows = [int(value) for value in values if is_whole(value, 2)]
    if len(windows) < len(values):
        raise InputError(
            Option("window", window),
            ": a window is a whole number of observations, at least 2 (a spread needs two).",
        )
    if not windows or len(set(windows)) < len(windows):
        raise InputError(Option("window", window), ": give one window, or several different ones.")
    return tuple(sorted(windows))


def one_window(window: object) -> int:
    """A single window, at least 2."""
    if np.asarray(window).ndim:
        raise InputError(
            Option("window", window), ": this detector has one window; give one whole number, or use Detector."
        )
    return windows_given(window)[0]


def default_windows(count: int, ert: object) -> tuple[int, ...]:
    """Those of the default windows that the reference, and the expected run time, are long enough for."""
    number = _number("ert", ert)
    fitting = tuple(w for w in DEFAULT_WINDOWS if w * POINTS_PER_WINDOW <= count and w <= 3 * number)
    return fitting or DEFAULT_WINDOWS[:1]


def few_distinct(points: Float64Array | Sequence[object]) -> bool:
    """Whether values repeat so much (VALUE_COPIES times on average) that statistics have atoms that matter."""
    if isinstance(points, np.ndarray):
        if any(len(np.unique(column)) * VALUE_COPIES > len(points) for column in points.T):
            return False
        distinct = len(np.unique(points, axis=0))
    else:
        distinct = len({repr(point) for point in points})
    return distinct * VALUE_COPIES <= len(points)


def enough_points(count: int, held_out: int, windows: tuple[int, ...]) -> None:
    least = 2 * windows[-1] + 2
    if count - held_out < least:
        aside = f" besides the {held_out} that the statistic sets aside" if held_out else ""
        raise InputError(
            f"A reference of {counted(count, 'point')} is too small for a window of {windows[-1]}: at least {least} "
            f"are needed{aside}, to draw windows from it and have something left to compare them with. "
            "Collect more, or choose shorter windows."
        )


def seed_number(seed: object) -> int:
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    if not is_whole(seed, 0, math.inf):
        raise InputError(Option("seed", seed), ": a seed is a whole number from 0 on; leave it out for a fresh one.")
    if seed > LARGEST_SEED:
        raise InputError(
            Option("seed", seed),
            ": a seed is at most 2**4096, since files have no room for longer ones; leave it out for a fresh one.",
        )
    return int(seed)


def group_labels(groups: object, count: int) -> Int64Array:
    """The number of each observation's group, counted through; all 0 if none are given."""
    if groups is None:
        return np.zeros(count, dtype=np.int64)
    try:
        labels = np.asarray(groups)
    except ValueError:
        labels = np.empty(())  # of several shapes
    if labels.shape != (count,):
        raise InputError(
            Option("groups"),
            f" has shape {labels.shape}; it must name the group of each of the {count} reference observations: one "
            "label per observation, in the same order.",
        )
    return np.concatenate([[0], np.cumsum(labels[1:] != labels[:-1])])


def group_edges(groups: object, count: int) -> Int64Array:
    """Where groups of consecutive observations begin, and the end; one group if none are given."""
    starts = np.flatnonzero(np.diff(group_labels(groups, count))) + 1
    return np.concatenate([[0], starts, [count]])


def sampler(given: object) -> Sampler | Literal["auto"]:
    """How to draw null streams."""
    if isinstance(given, str) and given == "auto":
        return "auto"
    if isinstance(given, Independent):
        return given
    if not isinstance(given, Blocks):
        raise InputError(Option("sampler", given), " is unknown; give 'auto', Independent() or Blocks().")
    _block_number(Option("length", given.length, of="Blocks"), 1)
    _block_number(Option("guard", given.guard, of="Blocks"), 0)
    return given


def _block_number(option: Option, least: int) -> None:
    if option.value is not None and not is_whole(option.value, least):
        raise InputError(
            option, f": must be a whole number from {least} on; leave it out to have it chosen from the reference."
        )


def guarantee(given: object, *, interval: bool) -> float | None:
    """The probability with which the promise is to hold."""
    if given is None:
        return None
    number = fraction("guarantee", given, 0.5, 0.999)
    if not interval:
        raise InputError(
            "A guarantee needs ",
            Option("interval", True),
            ": it is the interval that says how far to raise thresholds.",
        )
    return number


def fraction(name: str, value: object, low: float, high: float) -> float:
    number = _number(name, value)
    if not low <= number <= high:
        raise InputError(Option(name, value), f" must lie between {low:g} and {high:g}.")
    return number


def precision(value: object) -> float | Literal["auto"]:
    """Of a simulation: a relative error, or as small a one as the reference deserves."""
    return "auto" if isinstance(value, str) and value == "auto" else fraction("error", value, 1e-4, 1.0)


def positive_integer(name: str, value: object) -> int | None:
    if value is None:
        return None
    if not is_whole(value, 1):
        raise InputError(
            Option(name, value),
            " must be a whole number from 1 on; leave it out to have it chosen.",
        )
    return int(value)


def _number(name: str, value: object) -> float:
    if not is_number(value):
        raise InputError(Option(name, value), f" is a {type(value).__name__}; it must be a number.")
    if not (isinstance(value, float | np.floating) or is_finite(value)):
        raise InputError(Option(name, value), " is more than numbers reach; it must be less than 1e308 either way.")
    return float(value)


def _numbers(values: object) -> Float64Array:
    try:
        array = plain_array(values)
        # In one layout, and writeable: compiled functions would be compiled anew for any other.
        if array.dtype == np.float64 and array.flags.carray:
            rows: Float64Array = array
            return rows
        if array.dtype.kind in "biuf":
            return np.require(array, np.float64, ["C", "W"])
    except ValueError:
        pass
    raise InputError(
        f"The observation is {_describe([values])}, not numbers; the reference is numeric, so it must be too."
    )


def plain_array(values: object) -> Array:
    """As NumPy has it: tensors leave their device and their graph, sparse rows get their zeros."""
    if type(values) is np.ndarray:
        return values
    if is_tensor(values):
        tensor = values.detach().cpu()
        return np.asarray(tensor.double() if tensor.is_floating_point() else tensor)
    if not is_sparse(values):
        return np.asarray(unmasked(values))
    entries = math.prod(values.shape)
    if entries > MOST_ENTRIES:
        raise InputError(
            f"A sparse matrix of shape {values.shape} has {entries:.3g} entries, zeros included; at most "
            f"{MOST_ENTRIES:.3g} are compared. Reduce its columns first (a truncated SVD, say), or give fewer rows."
        )
    return np.asarray(values.toarray())


def unmasked(values: object) -> object:
    """With a gap (NaN, or None) where a mask covers a value: what is under it is no data."""
    if isinstance(values, list | tuple) and any(isinstance(value, np.ma.MaskedArray) for value in values):
        values = np.ma.stack([np.ma.asarray(value) for value in values])
    if not isinstance(values, np.ma.MaskedArray):
        return values
    data: Array = values.data
    if not np.ma.is_masked(values):
        return data
    filled = data.astype(np.float64 if data.dtype.kind in "biuf" else object)
    filled[np.ma.getmaskarray(values)] = np.nan if filled.dtype == np.float64 else None
    return filled


def tensor_rows(block: Tensor, width: int) -> Tensor:
    """New observations that are on a GPU, checked there."""
    if block.ndim == 1 and width == 1:
        block = block[:, None]
    if block.ndim != 2 or block.shape[1] != width:
        raise InputError(
            f"The block is a tensor of shape {tuple(block.shape)}; it must have a row of {width} numbers for each "
            "observation."
        )
    block = block.detach()
    if not bool(block.isfinite().all()):
        _finite(plain_array(block), "The block")
    return block


def _rows(array: Array) -> Float64Array:
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"The reference has shape {array.shape}; it must have one row per observation and at least one column. "
            "Flatten or embed each observation (an image, say) to a row of numbers first."
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def _of_width(array: Float64Array, width: int) -> Float64Array:
    if array.shape[1] != width:
        raise InputError(
            f"The block has {counted(array.shape[1], 'column')}; the reference has {width}, and the block must have as "
            "many."
        )
    return np.ascontiguousarray(array)


def _finite(array: Float64Array, what: str) -> Float64Array:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):  # the quickest way to see that all are
            rows: Float64Array = array
            return rows
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        row, column = bad[0]
        place = f"row {row + 1}, column {column + 1} (index {row}, {column})"
        if len(array) == 1:
            place = f"column {column + 1} (index {column})"
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise InputError(
            f"{what} holds {array[row, column]} in {place}{more}; every value must be finite, since one that is not "
            "would blind the detector for a whole window. Drop or fill such rows, or fit to a data frame, in which "
            "missing values are a kind of their own."
        )
    return array


def _describe(values: object) -> str:
    first = values[0] if isinstance(values, list | tuple) and values else values
    return f"{type(first).__name__} values such as {shown(first)}"
