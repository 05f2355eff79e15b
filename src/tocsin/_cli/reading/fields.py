"""Fields of text files as values of columns."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence

import numpy as np

from tocsin._cli.reading.selection import At, Selection, not_finite, refusal
from tocsin._common.errors import InputError, Option
from tocsin._data.tables.table import Holds, Table, Values

Field = str | float | None | list["Field"] | dict[str, "Field"]
"""What JSON can hold; CSV has strings."""

GAPS = ("", "na", "n/a", "nan", "null", "none")
"""Fields that say that a number, truth value or time is missing, in any case. Among strings only an empty one does."""

TRUTHS = {"true": 1.0, "false": 0.0}

EPOCH = datetime.datetime(1970, 1, 1)


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
        if not _is_gap(field):
            value = read(field)
            if value is None:
                raise BadValueError(i, _other(at(i), name, field, holds))
            data[i] = value
    return Values.of_numbers(data, holds)


def _guess(name: str, fields: Sequence[Field], at: At) -> Holds:
    """What a column holds: truth values, numbers or times if all fields are such; else strings."""
    there = [(i, field) for i, field in enumerate(fields) if not _is_gap(field)]
    if not there:
        return "nothing"
    for holds, read in READERS.items():
        if all(read(field) is not None for _, field in there):
            return holds
    for i, field in there:
        if not isinstance(field, str):
            raise BadValueError(i, _mixed(at(i), name, field))
    return "strings"


def is_word(field: str) -> bool:
    """Whether a field is none of the values that columns hold, strings apart: the name of a column, say."""
    return not _is_gap(field) and all(read(field) is None for read in READERS.values())


def _numbers(name: str, fields: Sequence[Field], at: At, *, gaps: bool) -> Values:
    try:
        data = np.array(fields, dtype=np.float64)
        if data.ndim == 1 and np.isfinite(data).all():
            return Values("numbers", data)
    except (TypeError, ValueError, OverflowError):
        pass
    data = np.empty(len(fields))
    for i, field in enumerate(fields):
        if gaps and _is_gap(field):
            data[i] = np.nan
            continue
        value = _number(field)
        if value is None:
            raise BadValueError(i, refusal(at(i), name, field) if not gaps else _other(at(i), name, field, "numbers"))
        if not math.isfinite(value):
            raise BadValueError(i, not_finite(at(i), name, value))
        data[i] = value
    return Values.of_numbers(data)


def _is_gap(field: Field) -> bool:
    if isinstance(field, str):
        return field.strip().lower() in GAPS
    return field is None or (isinstance(field, float) and field != field)


def _number(field: Field) -> float | None:
    if field is None or isinstance(field, list | dict):
        return None
    try:
        return float(field)
    except (ValueError, OverflowError):
        return None


def _truth(field: Field) -> float | None:
    if isinstance(field, bool):
        return float(field)
    return TRUTHS.get(field.strip().lower()) if isinstance(field, str) else None


def _seconds(field: Field) -> float | None:
    """Seconds since 1970 of a time as ISO 8601 writes it."""
    if not isinstance(field, str):
        return None
    try:
        time = datetime.datetime.fromisoformat(field.strip())
    except ValueError:
        return None
    naive = time if time.tzinfo is None else time.astimezone(datetime.UTC).replace(tzinfo=None)
    return (naive - EPOCH).total_seconds()


READERS: dict[Holds, Callable[[Field], float | None]] = {"truth values": _truth, "numbers": _number, "times": _seconds}
"""How fields become what columns hold, the strictest first."""


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
