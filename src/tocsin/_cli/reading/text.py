"""CSV and JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from tocsin._cli.reading.fields import BadValueError, is_word, table_of
from tocsin._cli.reading.lines import BadRow, OnBad, Source, StandardInput, refuse, tell_of_the_last
from tocsin._cli.reading.selection import Selection, listed
from tocsin._common.errors import InputError, Option
from tocsin._data.tables import Table, Values, numbered
from tocsin._data.tables.words import Field

NOTHING: Mapping[str, Field] = {}


class Row(NamedTuple):
    """Names of columns, their fields, and where they are: the line, its text, and where it ends.

    aside: fields beside those that are watched, by name.  trouble: why it is no row.
    """

    names: tuple[str, ...]
    fields: Sequence[Field]
    line: int
    text: str
    mark: object
    aside: Mapping[str, Field] = NOTHING
    trouble: InputError | None = None


NONE = Table({})


class Block(NamedTuple):
    """Rows, and where each ends: its mark, which is its number in files that have no lines.

    lines: the number and the text of each one's line, if they were lines.
    aside: what stands beside the columns that are watched.
    """

    table: Table
    marks: Sequence[object]
    lines: Sequence[tuple[int, str]] = ()
    aside: Table = NONE

    def line(self, i: int) -> tuple[int, str]:
        """The number of a row's line, and what stood there; or its own number, and what would have."""
        return self.lines[i] if self.lines else (self.number(i), in_words(self.table[i : i + 1]))

    def number(self, i: int) -> int:
        """The number of a row's line, or its own in a file that has no lines."""
        mark = self.lines[i][0] if self.lines else self.marks[i]
        return mark if isinstance(mark, int) else 0

    def holding(self, table: Table) -> Block:
        """The same rows as they are in this table."""
        return Block(table, self.marks, self.lines, self.aside)

    def without(self, count: int) -> Block:
        """The rows after the first ones."""
        return Block(self.table[count:], self.marks[count:], self.lines[count:], self.aside[count:])


def in_words(row: Table) -> str:
    """A row that was no line, as one."""
    return ",".join(values.as_strings()[0] or "" for _, values in row)


def from_source(source: Source, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """CSV or JSON lines, whichever the first line is; a row is a line."""
    first = list(islice(source, 1))
    everything = chain(first, source)
    if source.named is None and first and is_json(first[0]):
        rows = _json_rows(source, everything, selection)
    else:
        rows = _csv_rows(source, _line_by_line(source, everything, _delimiter(first)), selection)
    yield from _grouped(source.name, rows, selection, size, on_bad)


def from_csv_source(source: Source, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """CSV in which quoted fields may span lines."""
    first = list(islice(source, 1))
    records = _across_lines(source, chain(first, source), _delimiter(first))
    yield from _grouped(source.name, _csv_rows(source, records, selection), selection, size, on_bad)


def from_csv_lines(source: Source, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """CSV in which a row is a line."""
    first = list(islice(source, 1))
    records = _line_by_line(source, chain(first, source), _delimiter(first))
    yield from _grouped(source.name, _csv_rows(source, records, selection), selection, size, on_bad)


def from_json_source(source: Source, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """Objects or arrays."""
    yield from _grouped(source.name, _json_rows(source, source, selection), selection, size, on_bad)


def from_lines(name: str, lines: Iterable[str], selection: Selection, size: int) -> Iterator[Table]:
    """CSV or JSON lines, whichever the first line is."""
    return (block.table for block in from_source(Source(name, lines), selection, size))


def from_standard_input(name: str, selection: Selection, size: int) -> Iterator[Block]:
    """Rows as they arrive; without a last line that never ended, which is told."""
    return from_source(StandardInput(name, tell_of_the_last), selection, size)


def from_csv(path: str, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """A file in which quoted fields may span lines."""
    with Path(path).open(encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
        yield from from_csv_source(Source(path, file), selection, size, on_bad)


def from_json_lines(path: str, selection: Selection, size: int, on_bad: OnBad = refuse) -> Iterator[Block]:
    """A file of objects or arrays."""
    with Path(path).open(encoding="utf-8-sig", errors="backslashreplace") as file:
        yield from from_json_source(Source(path, file), selection, size, on_bad)


def is_json(line: str) -> bool:
    """Whether a first line is an object or an array, and not CSV."""
    return line.lstrip().startswith(("{", "["))


def has_names(line: str) -> bool:
    """Whether a first line of CSV has the names of columns: a field that is none of the values that columns hold."""
    try:
        record = next(csv.reader(line.splitlines(keepends=True), delimiter=_delimiter([line]), strict=True), [])
    except csv.Error:
        return False
    return any(map(is_word, record))


def _delimiter(first: list[str]) -> str:
    return next((mark for mark in ",;\t" if any(mark in line for line in first)), ",")


class _Records(Iterator[list[str]]):
    """Lines of a source as lists of fields. began: the number of the line with which the latest one began."""

    began = 0

    def __init__(self, source: Source, lines: Iterable[str], delimiter: str) -> None:
        self._source, self._lines, self._delimiter = source, iter(lines), delimiter


class _line_by_line(_Records):  # noqa: N801
    """A record per line: a stray quote must not swallow the lines that follow it, where those before it are kept."""

    def __next__(self) -> list[str]:
        line = next(self._lines)
        self.began = self._source.number
        return next(csv.reader([line], delimiter=self._delimiter, strict=True))


class _across_lines(_Records):  # noqa: N801
    """Records with quoted fields that may span lines."""

    def __init__(self, source: Source, lines: Iterable[str], delimiter: str) -> None:
        super().__init__(source, lines, delimiter)
        self._fields = csv.reader(self._seen(), delimiter=delimiter, strict=True)

    def __next__(self) -> list[str]:
        self.began = 0
        return next(self._fields)

    def _seen(self) -> Iterator[str]:
        for line in self._lines:
            self.began = self.began or self._source.number
            yield line


def _csv_rows(source: Source, records: _Records, selection: Selection) -> Iterator[Row]:
    try:
        first = next(records, None)
    except csv.Error as error:
        raise _not_csv(source, records, error) from error
    if first is None:
        return
    names = numbered(len(first))
    if any(map(is_word, first)) if source.named is None else source.named:
        names = _header(source.name, first, selection)
        first = None
    positions = selection.positions(source.name, names)
    chosen = tuple(names[i] for i in positions)
    places: dict[str, int] | None = None
    while True:
        fields: list[str] = []
        aside: dict[str, Field] = {}
        trouble = None
        try:
            record, first = next(records, None) if first is None else first, None
            if record is None:
                return
            if len(record) == len(names):
                fields = [record[i] for i in positions]
                if selection.aside is not None:
                    places = selection.aside.places(names, record) if places is None else places
                    aside = {name: record[i] for name, i in places.items()}
            else:
                at = _at(source.name, source.number)
                trouble = InputError(f"{at}, has {len(record)} fields, the first row {len(names)}. Mend the row.")
        except csv.Error as error:
            trouble = _not_csv(source, records, error)
        yield Row(chosen, fields, source.number, source.text, source.mark, aside, trouble)


def _not_csv(source: Source, records: _Records, error: csv.Error) -> InputError:
    if records.began < source.number:
        return InputError(
            f"{source.name}, lines {records.began} to {source.number}, are not CSV: {error}. Perhaps there is a quote "
            f"too many in line {records.began}. Mend that line."
        )
    return InputError(f"{source.name}, line {source.number}, is not CSV: {error}. Mend the line.")


def _at(name: str, line: int) -> str:
    """Where a row is: rows that are taken in are counted by who does that, and lines as an editor counts them."""
    return f"{name}, line {line}"


def _header(name: str, fields: list[str], selection: Selection) -> tuple[str, ...]:
    names = tuple(field.strip() for field in fields)
    if any("\0" in name for name in names):
        raise InputError(f"{name} begins with NUL characters where names of columns should be: it is not text.")
    if selection.columns is None and "" in names:
        raise InputError(
            f"Column {names.index('') + 1} of {name} has no name in the header: perhaps it is an index, which would be "
            "taken for data. Choose the columns to read: ",
            Option("columns", list(filter(None, names))),
        )
    return names


def _json_rows(source: Source, texts: Iterable[str], selection: Selection) -> Iterator[Row]:
    names: tuple[str, ...] | None = None
    chosen: tuple[str, ...] = ()
    besides: list[str] = []
    places: dict[str, int] = {}
    for text in texts:
        at = _at(source.name, source.number)
        trouble, fields, aside = None, list[Field](), dict[str, Field]()
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError) as error:
            trouble = InputError(f"{at}, is not JSON: {error}. A line must be an object or an array.")
        else:
            record = parsed if isinstance(parsed, dict) else _unnamed(parsed)
            if names is None:
                names = tuple(record)
                chosen = tuple(names[i] for i in selection.positions(source.name, names))
                if selection.aside is not None:
                    places = selection.aside.places(names, list(record.values()))
                    besides = list(names)
            if record.keys() == set(names) if selection.columns is None else record.keys() >= set(chosen):
                fields = [record[name] for name in chosen]
                aside = {name: record.get(besides[i]) for name, i in places.items()}
            else:
                trouble = InputError(
                    f"{at}, has the columns {listed(record)}, and the first row has {listed(names)}. "
                    "Mend the row, or choose columns that all rows have: ",
                    Option("columns", ...),
                )
        yield Row(chosen, fields, source.number, source.text, source.mark, aside, trouble)


def _unnamed(parsed: Field) -> dict[str, Field]:
    values = parsed if isinstance(parsed, list) else [parsed]
    return dict(zip(numbered(len(values)), values, strict=True))


def _grouped(name: str, rows: Iterator[Row], selection: Selection, size: int, on_bad: OnBad) -> Iterator[Block]:
    """Rows in blocks of `size`; where a row is bad, those before it come first, and then it is `on_bad`'s."""
    trouble: InputError | None = None
    more = True
    while more:
        group: list[Row] = []
        try:
            while len(group) < size and (not group or group[-1].trouble is None):
                group.append(next(rows))
        except StopIteration:
            more = False
        except InputError as error:
            more, trouble = False, error
        bad = group.pop() if group and group[-1].trouble is not None else None
        yield from _blocks(name, group, selection, on_bad)
        if bad is not None and bad.trouble is not None:
            on_bad(BadRow(bad.line, bad.text, bad.trouble, bad.mark))
    if trouble is not None:
        raise trouble


def _blocks(name: str, group: list[Row], selection: Selection, on_bad: OnBad) -> Iterator[Block]:
    while group:

        def at(i: int, group: list[Row] = group) -> str:
            return _at(name, group[i].line)

        good = len(group)
        try:
            table = table_of(group[0].names, [row.fields for row in group], selection, at)
        except BadValueError as error:
            good, trouble = error.row, InputError(*error.parts)
            if good:
                table = table_of(group[0].names, [row.fields for row in group[:good]], selection, at)
        if good:
            lines = [(row.line, row.text) for row in group[:good]]
            yield Block(table, [row.mark for row in group[:good]], lines, _aside([row.aside for row in group[:good]]))
        if good < len(group):
            bad = group[good]
            on_bad(BadRow(bad.line, bad.text, trouble, bad.mark))
        group = group[good + 1 :]


def _aside(rows: Sequence[Mapping[str, Field]]) -> Table:
    """Fields as words, whatever they are: they are shown, and never compared."""
    return Table({name: Values.of_words([_word(row[name]) for row in rows]) for name in rows[0]})


def _word(field: Field) -> str | None:
    if field is None or field == "":
        return None
    return field.strip() if isinstance(field, str) else json.dumps(field)
