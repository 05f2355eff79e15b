"""Fields of text files as values of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tocsin._cli.reading.selection import At, Selection, not_finite, refusal
from tocsin._common.errors import InputError, Option
from tocsin._data.tables.table import Holds, Table, Values
from tocsin._data.tables.words import READERS, Field, guessed, is_gap, number


class BadValueError(InputError):
    """A value that is not what its column holds.

    row: where it is in its block.
    """

    def __init__(self, row: int, error: InputError) -> None:
        super().__init__(*error.parts)
        self.row = row


def table_of(names: Sequence[str], rows: Sequence[Sequence[Field]], selection: Selection, at: At) -> Table:
    """A table of rows of fields; a BadValueError names the first row that has to be refused."""
    columns, trouble = {}, None
    for name, fields in zip(names, zip(*rows, strict=True), strict=True):
        try:
            columns[name] = _values(name, fields, selection, at)
        except BadValueError as error:
            if trouble is None or error.row < trouble.row:
                trouble = error
    if trouble is not None:
        raise trouble
    return Table(columns)


def _values(name: str, fields: Sequence[Field], selection: Selection, at: At) -> Values:
    holds = selection.of(name)
    if holds is None or holds == "nothing":
        holds = _guess(name, fields, at)
    if holds in ("numbers", "nothing"):
        return _numbers(name, fields, at, gaps=selection.holds is not None)
    if holds == "strings":
        data = np.empty(len(fields), dtype=object)
        data[:] = [
            None if field is None or field == "" else _string(name, i, field, at) for i, field in enumerate(fields)
        ]
        if all(value is None for value in data):
            return Values("nothing", np.full(len(fields), np.nan))
        return Values("strings", data)
    read = READERS[holds]
    data = np.full(len(fields), np.nan)
    for i, field in enumerate(fields):
        if not is_gap(field):
            value = read(field)
            if value is None:
                raise BadValueError(i, _other(at(i), name, field, holds))
            data[i] = value
    return Values.of_numbers(data, holds)


def _guess(name: str, fields: Sequence[Field], at: At) -> Holds:
    """What a column holds: truth values, numbers or times if all fields are such; else strings."""
    holds = guessed(fields)
    if holds is not None:
        return holds
    for i, field in enumerate(fields):
        if not isinstance(field, str) and not is_gap(field):
            raise BadValueError(i, _mixed(at(i), name, field))
    return "strings"


def is_word(field: str) -> bool:
    """Whether a field is none of the values that columns hold, strings apart: the name of a column, say."""
    return not is_gap(field) and all(read(field) is None for read in READERS.values())


def _numbers(name: str, fields: Sequence[Field], at: At, *, gaps: bool) -> Values:
    try:
        data = np.array(fields, dtype=np.float64)
        if data.ndim == 1 and np.isfinite(data).all():
            return Values("numbers", data)
    except (TypeError, ValueError, OverflowError):
        pass
    data = np.empty(len(fields))
    for i, field in enumerate(fields):
        if gaps and is_gap(field):
            data[i] = np.nan
            continue
        value = number(field)
        if value is None:
            raise BadValueError(i, refusal(at(i), name, field) if not gaps else _other(at(i), name, field, "numbers"))
        if not math.isfinite(value):
            raise BadValueError(i, not_finite(at(i), name, value))
        data[i] = value
    return Values.of_numbers(data)


def _string(name: str, row: int, field: Field, at: At) -> str:
    if not isinstance(field, str):
        raise BadValueError(row, _other(at(row), name, field, "strings"))
    return field.strip()


def _mixed(where: str, column: str, field: Field) -> InputError:
    return InputError(
        f"{where}, column {column!r} holds {str(field)[:40]!r}, and not all of its values are numbers; a column holds "
        "numbers, truth values, times or strings. Mend the column, or leave it out: ",
        Option("columns", ...),
        " names those to read.",
    )


def _other(where: str, column: str, field: Field, holds: Holds) -> InputError:
    shown = f"{str(field)[:40]!r}"
    return InputError(
        f"{where}, column {column!r} holds {shown}; the reference has {holds} there, and so must the stream. Mend the "
        "row, or leave the column out and fit again."
    )
