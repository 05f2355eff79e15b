"""Rows of numbers from files and from standard input, block by block: a stream may be larger than memory.

    .csv                 a first row with a word in it is a header; comma, or semicolon or tab where there is no comma
    .jsonl, .ndjson      a JSON object or array per line
    .npy                 an array with one row per observation
    .parquet             needs the extra 'data'
    -                    standard input: CSV or JSON lines, whichever the first line is

Columns without names are called 1, 2, ... Rows are counted from 1; headers and blank lines are not rows. A bad row ends
the reading with an error that names it. The rows before it have been handed out by then, whatever the size of blocks.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tocsin.compute.arrays import Float64Array
from tocsin.errors import InputError, MissingExtraError

STANDARD_INPUT = "-"

BLOCK = 4096
"""Rows handed out at once."""

Columns = Sequence[str] | None


class Block(NamedTuple):
    """Consecutive rows: the names of their columns, and an array (rows, columns) of finite numbers."""

    columns: tuple[str, ...]
    rows: Float64Array


def read_blocks(path: str, columns: Columns = None, size: int = BLOCK) -> Iterator[Block]:
    """The rows of a file, or of standard input for '-', `size` at a time.

    columns: names of the columns to read, in this order; all of them by default.
    """
    if path == STANDARD_INPUT:
        yield from _grouped(_standard_input(columns), size)
        return
    suffix = Path(path).suffix.lower()
    if suffix not in READERS:
        raise InputError(
            f"The format of {path} cannot be told from its name, which must end in one of {', '.join(READERS)}. Rename "
            "the file, or give '-' and pipe CSV or JSON lines in."
        )
    try:
        yield from READERS[suffix](path, columns, size)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def read_whole(path: str, columns: Columns = None) -> Block:
    """All rows at once."""
    blocks = list(read_blocks(path, columns))
    if not blocks:
        raise InputError(f"{source_name(path)} holds no rows; it must have one per observation.")
    return Block(blocks[0].columns, np.concatenate([block.rows for block in blocks]))


def source_name(path: str) -> str:
    """What to call the source in a message."""
    return "standard input" if path == STANDARD_INPUT else path


# Text: CSV and JSON lines

Row = tuple[tuple[str, ...], list[float]]
"""Names of columns, and their values."""


class _Lines:
    """The lines of a text that are not blank; `number` is that of the latest, blank ones counted."""

    def __init__(self, name: str, file: Iterable[str]) -> None:
        self.name, self.number, self._file = name, 0, iter(file)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            line = next(self._file)
            self.number += 1
            if line.strip():
                return line

    def at(self, row: int) -> str:
        return f"{self.name}, row {row} (line {self.number})"


def _standard_input(columns: Columns) -> Iterator[Row]:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="backslashreplace")
    lines = _Lines(source_name(STANDARD_INPUT), sys.stdin)
    first = list(islice(lines, 1))
    if first and first[0].lstrip().startswith(("{", "[")):
        return _json_rows(lines, chain(first, lines), columns)
    return _csv_rows(lines, _line_by_line(chain(first, lines), _delimiter(first)), columns)


def _from_csv(path: str, columns: Columns, size: int) -> Iterator[Block]:
    with Path(path).open(encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
        lines = _Lines(path, file)
        first = list(islice(lines, 1))
        records = csv.reader(chain(first, lines), delimiter=_delimiter(first), strict=True)
        yield from _grouped(_csv_rows(lines, records, columns), size)


def _from_json_lines(path: str, columns: Columns, size: int) -> Iterator[Block]:
    with Path(path).open(encoding="utf-8-sig", errors="backslashreplace") as file:
        lines = _Lines(path, file)
        yield from _grouped(_json_rows(lines, lines, columns), size)


def _delimiter(first: list[str]) -> str:
    return next((mark for mark in ",;\t" if any(mark in line for line in first)), ",")


def _line_by_line(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """A record per line: a stray quote must not swallow the lines that follow it in a live stream."""
    for line in lines:
        yield from csv.reader([line], delimiter=delimiter, strict=True)


def _csv_rows(lines: _Lines, records: Iterator[list[str]], columns: Columns) -> Iterator[Row]:
    try:
        first = next(records, None)
        if first is None:
            return
        names = _numbered(len(first))
        if any(field.strip() and not _is_number(field) for field in first):
            names = _header(lines.name, first, columns)
        else:
            records = chain([first], records)
        positions = _positions(lines.name, names, columns)
        chosen = tuple(names[i] for i in positions)
        for row, record in enumerate(records, 1):
            if len(record) != len(names):
                raise InputError(f"{lines.at(row)} has {len(record)} fields, the first row {len(names)}. Mend the row.")
            yield chosen, _floats(lines.at, row, chosen, [record[i] for i in positions])
    except csv.Error as error:
        raise InputError(f"{lines.name}, line {lines.number}, is not CSV: {error}. Mend the line.") from error


def _header(name: str, fields: list[str], columns: Columns) -> tuple[str, ...]:
    names = tuple(field.strip() for field in fields)
    if columns is None and "" in names:
        raise InputError(
            f"Column {names.index('') + 1} of {name} has no name in the header: perhaps it is an index, which would be "
            f"taken for data. Choose the columns to read: --columns {','.join(filter(None, names))}"
        )
    return names


def _json_rows(lines: _Lines, texts: Iterable[str], columns: Columns) -> Iterator[Row]:
    names: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    for row, text in enumerate(texts, 1):
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{lines.at(row)} is not JSON: {error}. A line must be an object or an array.") from error
        record = parsed if isinstance(parsed, dict) else _unnamed(parsed)
        if row == 1:
            names = tuple(record)
            chosen = tuple(names[i] for i in _positions(lines.name, names, columns))
        if not (record.keys() == set(names) if columns is None else record.keys() >= set(chosen)):
            raise InputError(
                f"{lines.at(row)} has the columns {_listed(record)}, and the first row has {_listed(names)}. "
                "Mend the row, or choose columns that all rows have with --columns."
            )
        yield chosen, _floats(lines.at, row, chosen, [record[name] for name in chosen])


def _unnamed(parsed: Any) -> dict[str, Any]:
    values = parsed if isinstance(parsed, list) else [parsed]
    return dict(zip(_numbered(len(values)), values, strict=True))


def _grouped(rows: Iterator[Row], size: int) -> Iterator[Block]:
    """Rows in blocks of `size`; where a row is bad, those before it come first, and then its error."""
    trouble: InputError | None = None
    more = True
    while more:
        group: list[Row] = []
        try:
            while len(group) < size:
                group.append(next(rows))
        except StopIteration:
            more = False
        except InputError as error:
            more, trouble = False, error
        if group:
            yield Block(group[0][0], np.array([values for _, values in group]))
    if trouble is not None:
        raise trouble


# Arrays: NPY and Parquet


def _from_npy(path: str, columns: Columns, size: int) -> Iterator[Block]:
    try:
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a whole NPY file of numbers: {error}.") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        kind = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else "an archive of arrays"
        raise InputError(f"{path} holds {kind}; it must be one array of numbers, with one row per observation.")
    table = array[:, None] if array.ndim == 1 else array
    names = _numbered(table.shape[1])
    positions = _positions(path, names, columns)
    pieces = (table[start : start + size, positions] for start in range(0, len(table), size))
    yield from _checked(path, tuple(names[i] for i in positions), pieces)


def _from_parquet(path: str, columns: Columns, size: int) -> Iterator[Block]:
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data", f"Reading {path}") from error
    try:
        with parquet.ParquetFile(path) as file:
            names = tuple(file.schema_arrow.names)
            chosen = tuple(names[i] for i in _positions(path, names, columns))
            batches = file.iter_batches(size, columns=list(chosen))
            pieces = (_from_arrow(arrow, path, batch.select(list(chosen))) for batch in batches)
            yield from _checked(path, chosen, pieces)
    except arrow.ArrowException as error:
        raise InputError(f"{path} is not a whole Parquet file: {error}") from error


def _from_arrow(arrow: Any, path: str, batch: Any) -> Float64Array:
    out = np.empty((batch.num_rows, batch.num_columns))
    types = arrow.types
    for i, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        if types.is_boolean(column.type) or types.is_decimal(column.type):
            column = column.cast(arrow.float64())
        elif not (types.is_integer(column.type) or types.is_floating(column.type) or types.is_null(column.type)):
            value = next((value.as_py() for value in column if value.is_valid), None)
            raise _refusal(path, name, f"{column.type} {value!r}")
        out[:, i] = column.to_numpy(zero_copy_only=False)
    return out


def _checked(path: str, columns: tuple[str, ...], pieces: Iterable[Float64Array]) -> Iterator[Block]:
    """Blocks of these arrays; where a row is bad, those before it come first, and then its error."""
    seen = 0
    for piece in pieces:
        rows = np.ascontiguousarray(piece, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(rows).all(1))
        good = rows[: bad[0]] if len(bad) else rows
        if len(good):
            yield Block(columns, good)
        if len(bad):
            row = seen + int(bad[0]) + 1
            _floats(lambda row: f"{path}, row {row}", row, columns, rows[bad[0]].tolist())
        seen += len(rows)


READERS: dict[str, Callable[[str, Columns, int], Iterator[Block]]] = {
    ".csv": _from_csv,
    ".jsonl": _from_json_lines,
    ".ndjson": _from_json_lines,
    ".npy": _from_npy,
    ".parquet": _from_parquet,
}


# What all formats share


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(str(i + 1) for i in range(count))


def _listed(names: Iterable[str]) -> str:
    listed = [name or "''" for name in names]
    return ", ".join(listed[:20]) + (f" and {len(listed) - 20} more" if len(listed) > 20 else "")


def _positions(name: str, names: tuple[str, ...], columns: Columns) -> list[int]:
    """Where the chosen columns are among `names`."""
    if columns is None:
        return list(range(len(names)))
    for column in columns:
        if names.count(column) != 1:
            problem = "more than one column" if column in names else "no column"
            raise InputError(f"{name} has {problem} {column!r}; its columns are {_listed(names)}.")
    return [names.index(column) for column in columns]


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _floats(at: Callable[[int], str], row: int, columns: tuple[str, ...], values: Sequence[Any]) -> list[float]:
    """The values of a row as finite numbers."""
    numbers: list[float] = []
    for column, value in zip(columns, values, strict=True):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise _refusal(at(row), column, value) from None
        if not math.isfinite(number):
            raise InputError(
                f"{at(row)}, column {column!r} holds {number}; every value must be finite, since one that is not would "
                "blind the detector for a whole window. Drop or fill such rows."
            )
        numbers.append(number)
    return numbers


def _refusal(where: str, column: str, value: object) -> InputError:
    if value is None or (isinstance(value, str) and not value.strip()):
        return InputError(f"{where}, column {column!r} is empty; every value must be a number. Drop or fill such rows.")
    shown = f"{str(value)[:40]!r}"
    return InputError(
        f"{where}, column {column!r} holds {shown}; every value must be a number. Encode the column as numbers, or "
        "leave it out: --columns names those to read."
    )
