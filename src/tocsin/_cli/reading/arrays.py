"""NPY, NPZ, Parquet and Feather."""

from __future__ import annotations

import importlib
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tocsin._cli.reading.lines import BadRow, OnBad, refuse
from tocsin._cli.reading.selection import Selection, not_finite, refusal
from tocsin._cli.reading.text import Block, in_words
from tocsin._common.errors import InputError, MissingExtraError
from tocsin._compute.arrays import Array
from tocsin._data.tables import Table, Values, numbered
from tocsin._data.tables.sources import from_frame


def from_npy(path: str, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """One array, mapped rather than read."""
    try:
        array: object = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a whole NPY file of numbers: {error}.") from error
    rows = _rows(path, array)
    names = numbered(rows.shape[1])
    yield from _of_arrays(path, dict(zip(names, rows.T, strict=True)), selection, size, on_bad)


def from_npz(path: str, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """An archive of arrays of equal length."""
    try:
        with Path(path).open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is not a whole NPZ file of numbers: {error}.") from error
    lengths = {len(_rows(path, array)) for array in arrays.values()}
    if len(lengths) != 1:
        raise InputError(
            f"{path} holds arrays of {sorted(lengths)} rows; they must have as many as each other, one per observation."
        )
    columns: dict[str, Array] = {}
    for name, array in arrays.items():
        rows = _rows(path, array)
        for i, column in enumerate(rows.T):
            own = str(i + 1) if len(arrays) == 1 else f"{name}.{i + 1}"
            columns[name if rows.shape[1] == 1 and len(arrays) > 1 else own] = column
    yield from _of_arrays(path, columns, selection, size, on_bad)


def _rows(path: str, array: object) -> Array:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        kind = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else "an archive of arrays"
        raise InputError(f"{path} holds {kind}; it must be one array of numbers, with one row per observation.")
    return array[:, None] if array.ndim == 1 else array


def _of_arrays(
    path: str, columns: Mapping[str, Array], selection: Selection, size: int, on_bad: OnBad
) -> Iterator[Block]:
    names = tuple(columns)
    chosen = [names[i] for i in selection.positions(path, names)]
    besides = _beside(names, selection, [None] * len(names))
    length = len(next(iter(columns.values())))
    size = min(size, max(length, 1))
    pieces = (
        (
            Table({name: _values(columns[name][start : start + size]) for name in chosen}),
            Table({own: _values(columns[name][start : start + size]) for own, name in besides.items()}),
        )
        for start in range(0, length, size)
    )
    yield from _checked(path, pieces, selection, on_bad)


def _beside(names: Sequence[str], selection: Selection, first: Sequence[object]) -> dict[str, str]:
    """The columns beside those that are watched, by the names that they are known by there."""
    places = {} if selection.aside is None else selection.aside.places(names, first)
    return {own: names[place] for own, place in places.items()}


def _values(numbers: Array) -> Values:
    return Values.of_numbers(numbers, "truth values" if numbers.dtype.kind == "b" else "numbers")


def from_parquet(path: str, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """Row groups, a batch at a time."""
    arrow, parquet = _arrow(path, "pyarrow.parquet")
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:  # a buffer would hold all of the file
            names = tuple(file.schema_arrow.names)
            chosen = [names[i] for i in selection.positions(path, names)]
            size = min(size, max(file.metadata.num_rows, 1))
            besides = _beside(names, selection, _first_words(arrow, selection, file.iter_batches(1)))
            wanted = list(dict.fromkeys([*chosen, *besides.values()]))
            batches = file.iter_batches(size, columns=wanted)
            yield from _of_batches(arrow, path, batches, chosen, besides, selection, on_bad)
    except arrow.ArrowException as error:
        raise InputError(f"{path} is not a whole Parquet file: {error}") from error


def from_feather(path: str, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """Record batches of an Arrow file, mapped rather than read."""
    arrow, ipc = _arrow(path, "pyarrow.ipc")
    try:
        with arrow.memory_map(path) as mapped, ipc.open_file(mapped) as file:
            names = tuple(file.schema.names)
            chosen = [names[i] for i in selection.positions(path, names)]
            whole = [file.get_batch(i) for i in range(file.num_record_batches)]
            besides = _beside(names, selection, _first_words(arrow, selection, iter(whole)))
            batches = (batch.slice(start, size) for batch in whole for start in range(0, batch.num_rows, size))
            yield from _of_batches(arrow, path, batches, chosen, besides, selection, on_bad)
    except arrow.ArrowException as error:
        raise InputError(f"{path} is not a whole Feather file: {error}") from error


def _arrow(path: str, module: str) -> tuple[ModuleType, ModuleType]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data", f"Reading {path}") from error


def _of_batches(
    arrow: ModuleType,
    path: str,
    batches: Iterable[Any],
    chosen: list[str],
    besides: Mapping[str, str],
    selection: Selection,
    on_bad: OnBad,
) -> Iterator[Block]:
    pieces = (
        (
            _of_batch(arrow, batch.select(chosen)),
            Table({own: _words_of(arrow, batch.column(name)) for own, name in besides.items()}),
        )
        for batch in batches
        if batch.num_rows
    )
    yield from _checked(path, pieces, selection, on_bad)


def _words_of(arrow: ModuleType, column: Any) -> Values:
    """As words: of times with a zone Arrow tells them in UTC, and says so."""
    try:
        return Values.of_words(column.cast(arrow.string()).to_pylist())
    except arrow.ArrowException:  # lists and the like
        return Values.of_words([None if value is None else str(value) for value in column.to_pylist()])


def _first_words(arrow: ModuleType, selection: Selection, batches: Iterator[Any]) -> list[str | None]:
    """Of the first row, if anyone asks."""
    first = next(batches, None) if selection.aside is not None else None
    if first is None or not first.num_rows:
        return []
    return [_words_of(arrow, column).data[0] for column in first.slice(0, 1).columns]


def _of_batch(arrow: ModuleType, batch: Any) -> Table:
    """Numbers as they are, which is quick; all else as a frame's."""
    names = batch.schema.names
    numbers = {
        name: Values.of_numbers(column.to_numpy(zero_copy_only=False))
        for name, column in zip(names, batch.columns, strict=True)
        if arrow.types.is_floating(column.type) or arrow.types.is_integer(column.type)
    }
    if len(numbers) == len(names):
        return Table(numbers)
    others = [name for name in names if name not in numbers]
    rest = from_frame(arrow.Table.from_batches([batch.select(others)])).columns
    return Table({name: numbers[name] if name in numbers else rest[name] for name in names})


def _checked(path: str, pieces: Iterable[tuple[Table, Table]], selection: Selection, on_bad: OnBad) -> Iterator[Block]:
    """Tables as they are, with the numbers of their rows; a row with a value that is none is `on_bad`'s."""
    seen = 0
    for piece, aside in pieces:
        fine = np.ones(len(piece), dtype=bool)
        for name, values in piece:
            if selection.of(name) == "numbers" and values.holds not in ("numbers", "truth values", "nothing"):
                raise refusal(path, name, values.as_strings()[int(np.argmin(values.missing))])
            if values.holds in ("numbers", "truth values", "nothing"):
                fine &= np.isfinite(values.data) if selection.holds is None else ~np.isinf(values.data)
        begin = 0
        for bad in [*np.flatnonzero(~fine).tolist(), len(piece)]:
            if begin < bad:
                yield Block(piece[begin:bad], range(seen + begin + 1, seen + bad + 1), (), aside[begin:bad])
            if bad < len(piece):
                on_bad(_bad_row(path, piece[bad : bad + 1], seen + bad + 1, selection))
            begin = bad + 1
        seen += len(piece)


def _bad_row(path: str, row: Table, number: int, selection: Selection) -> BadRow:
    text = in_words(row)
    numbers = [(name, values.data[0]) for name, values in row if values.holds != "strings"]
    name, value = next((n, v) for n, v in numbers if np.isinf(v) or (selection.holds is None and np.isnan(v)))
    return BadRow(number, text, not_finite(f"{path}, row {number}", name, value), number)
