"""CSV and JSON lines."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from tocsin._cli.reading.fields import BadValueError, is_word, table_of
from tocsin._cli.reading.selection import Selection, listed
from tocsin._common.errors import InputError, Option
from tocsin._data.tables import Table, numbered
from tocsin._data.tables.words import Field


class Row(NamedTuple):
    """Names of columns, their fields, and the line that they are on."""

    names: tuple[str, ...]
    fields: Sequence[Field]
    line: int


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
        return _at(self.name, row, self.number)


def _at(name: str, row: int, line: int) -> str:
    return f"{name}, row {row} (line {line})"


def from_standard_input(name: str, selection: Selection, size: int) -> Iterator[Table]:
    """Rows as they arrive."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="backslashreplace")
    yield from from_lines(name, sys.stdin, selection, size)


def from_lines(name: str, lines: Iterable[str], selection: Selection, size: int) -> Iterator[Table]:
    """CSV or JSON lines, whichever the first line is; a row is a line."""
    numbered_lines = _Lines(name, lines)
    first = list(islice(numbered_lines, 1))
    everything = chain(first, numbered_lines)
    if first and first[0].lstrip().startswith(("{", "[")):
        yield from _grouped(name, _json_rows(numbered_lines, everything, selection), selection, size)
    else:
        records = _line_by_line(everything, _delimiter(first))
        yield from _grouped(name, _csv_rows(numbered_lines, records, selection), selection, size)


def from_csv(path: str, selection: Selection, size: int) -> Iterator[Table]:
    """A file in which quoted fields may span lines."""
    with Path(path).open(encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
        lines = _Lines(path, file)
        first = list(islice(lines, 1))
        records = csv.reader(chain(first, lines), delimiter=_delimiter(first), strict=True)
        yield from _grouped(path, _csv_rows(lines, records, selection), selection, size)


def from_json_lines(path: str, selection: Selection, size: int) -> Iterator[Table]:
    """A file of objects or arrays."""
    with Path(path).open(encoding="utf-8-sig", errors="backslashreplace") as file:
        lines = _Lines(path, file)
        yield from _grouped(path, _json_rows(lines, lines, selection), selection, size)


def _delimiter(first: list[str]) -> str:
    return next((mark for mark in ",;\t" if any(mark in line for line in first)), ",")


def _line_by_line(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """A record per line: a stray quote must not swallow the lines that follow it in a live stream."""
    for line in lines:
        yield from csv.reader([line], delimiter=delimiter, strict=True)


def _csv_rows(lines: _Lines, records: Iterator[list[str]], selection: Selection) -> Iterator[Row]:
    try:
        first = next(records, None)
        if first is None:
            return
        names = numbered(len(first))
        if any(map(is_word, first)):
            names = _header(lines.name, first, selection)
        else:
            records = chain([first], records)
        positions = selection.positions(lines.name, names)
        chosen = tuple(names[i] for i in positions)
        for row, record in enumerate(records, 1):
            if len(record) != len(names):
                raise InputError(f"{lines.at(row)} has {len(record)} fields, the first row {len(names)}. Mend the row.")
            yield Row(chosen, [record[i] for i in positions], lines.number)
    except csv.Error as error:
        raise InputError(f"{lines.name}, line {lines.number}, is not CSV: {error}. Mend the line.") from error


def _header(name: str, fields: list[str], selection: Selection) -> tuple[str, ...]:
    names = tuple(field.strip() for field in fields)
    if selection.columns is None and "" in names:
        raise InputError(
            f"Column {names.index('') + 1} of {name} has no name in the header: perhaps it is an index, which would be "
            "taken for data. Choose the columns to read: ",
            Option("columns", list(filter(None, names))),
        )
    return names


def _json_rows(lines: _Lines, texts: Iterable[str], selection: Selection) -> Iterator[Row]:
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
            chosen = tuple(names[i] for i in selection.positions(lines.name, names))
        if not (record.keys() == set(names) if selection.columns is None else record.keys() >= set(chosen)):
            raise InputError(
                f"{lines.at(row)} has the columns {listed(record)}, and the first row has {listed(names)}. "
                "Mend the row, or choose columns that all rows have: ",
                Option("columns", ...),
            )
        yield Row(chosen, [record[name] for name in chosen], lines.number)


def _unnamed(parsed: Field) -> dict[str, Field]:
    values = parsed if isinstance(parsed, list) else [parsed]
    return dict(zip(numbered(len(values)), values, strict=True))


def _grouped(name: str, rows: Iterator[Row], selection: Selection, size: int) -> Iterator[Table]:
    """Rows in tables of `size`; where a row is bad, those before it come first, and then its error."""
    trouble: InputError | None = None
    done, more = 0, True
    while more:
        group: list[Row] = []
        try:
            while len(group) < size:
                group.append(next(rows))
        except StopIteration:
            more = False
        except InputError as error:
            more, trouble = False, error
        if not group:
            break

        def at(i: int, group: list[Row] = group, done: int = done) -> str:
            return _at(name, done + i + 1, group[i].line)

        fields = [row.fields for row in group]
        try:
            yield table_of(group[0].names, fields, selection, at)
        except BadValueError as error:
            if error.row:
                yield table_of(group[0].names, fields[: error.row], selection, at)
            raise InputError(*error.parts) from None
        done += len(group)
    if trouble is not None:
        raise trouble
