"""What stands beside the rows of a stream in memory: columns to keep, texts, and times, those of an index too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tocsin._common.errors import InputError, Option
from tocsin._common.wording import listed
from tocsin._data.foreign import is_collection
from tocsin._data.intake import Intake, Tabular
from tocsin._data.representations.batches import count_of, piece_of
from tocsin._data.tables import Table, Values, as_record, as_table, is_frame
from tocsin._explain.beside import CLOCK, Beside, clock_among, moment

MICROSECOND = 1e-6


def texts_of(intake: Intake) -> list[str]:
    """The columns of texts: a detector knows no more of them than their n-grams."""
    columns = intake.columns.columns if isinstance(intake, Tabular) else ()
    return [column.name for column in columns if column.kind == "text"]


def beside_rows(intake: Intake, stream: object, keep: Sequence[str]) -> Table:
    """Columns of a stream by the names that `Beside` knows them by; none where it has no columns."""
    must_be_names(keep)
    head = piece_of(stream, 0, 1) if is_collection(stream) and count_of(stream) else None
    first = None if head is None else _columns(intake, head, set())
    if first is None:
        if keep and (not is_collection(stream) or count_of(stream)):
            raise InputError(
                Option("keep", list(keep)),
                f": the stream is a {type(stream).__name__}, whose columns have no names. Give a data frame, or leave "
                "it out.",
            )
        return Table({})
    absent = [name for name in keep if name not in first.names]
    if absent:
        raise InputError(
            Option("keep", list(keep)),
            f": the stream has no column {' or '.join(map(repr, absent))}; its columns are {listed(first.names)}. Name "
            "some of these, or leave it out.",
        )
    known = intake.columns.ignored if isinstance(intake, Tabular) else ()
    index = _index(stream)
    clock = None
    if index is None:
        clock = clock_among({name: _word(intake, head, name) for name in first.names}, known)
    sources = {name: name for name in (*keep, *texts_of(intake)) if name in first.names}
    if clock is not None:
        sources[CLOCK] = clock
    found = {} if index is None else {CLOCK: index}
    if sources:
        wanted = set(sources.values())
        table = _columns(intake, stream, wanted)
        assert table is not None
        found |= {own: table.columns[name] for own, name in sources.items()}
        if clock is not None and _has_zone(stream, clock):
            found[CLOCK] = _in_utc(found[CLOCK])
    return Table(found)


def beside_run(intake: Intake, rows: object, keep: Sequence[str], time: int, last: object) -> Beside:
    """What stands beside the latest observations of a run, of which so many were taken in, `last` as the last."""
    must_be_names(keep)
    if rows is None:
        raise InputError(
            Option("keep", list(keep)),
            " names columns of ",
            Option("rows", ...),
            ": give the latest observations, too.",
        )
    table, count = beside_rows(intake, rows, keep), count_of(rows) if is_collection(rows) else 0
    if not count or not _is_last(intake, piece_of(rows, count - 1, count), last):
        raise InputError(
            Option("rows", ...),
            ": its last row must be the observation that was taken in last, as it was given; rows before it come "
            "before it. Leave out those that come after.",
        )
    beside = Beside(keep, texts_of(intake), most=count, before=time - count)
    beside.add(table, count)
    return beside


def _is_last(intake: Intake, row: object, last: object) -> bool:
    """Whether this is the point that came last; a representation may differ in its last digits."""
    if isinstance(intake, Tabular):
        table = intake.table(row) or Table({})
        row = table.without([name for name in table.names if name not in intake.names])
    points = intake.many(row)
    if isinstance(points, np.ndarray):
        return bool(np.allclose(points[-1], np.asarray(last), rtol=1e-4, atol=1e-8))
    return repr(points[-1]) == repr(last)


def must_be_names(keep: object) -> None:
    """Refuse what is no list of names of columns."""
    if isinstance(keep, str) or not is_collection(keep) or not all(isinstance(name, str) for name in keep):
        raise InputError(
            Option("keep", keep), " must be names of columns, in a list: ", Option("keep", ["serial_number"]), "."
        )


def _columns(intake: Intake, stream: object, wanted: set[str]) -> Table | None:
    """A stream with names as a table; columns that are not wanted are left unread."""
    table = as_table(stream, lambda name: name not in wanted)
    if table is None and isinstance(intake, Tabular):
        table = intake.table(stream)
    return table


def _word(intake: Intake, head: object, name: str) -> object:
    """A column's first value, as a word that tells whether it is a time; nothing of one that is no value of a table."""
    try:
        table = _columns(intake, head, {name})
    except InputError:
        return None
    assert table is not None
    values = table.columns[name]
    if values.holds == "times":
        return "1970-01-01"
    return values.data[0] if values.holds == "strings" else None


def _index(stream: object) -> Values | None:
    """The times of a pandas index."""
    index: Any = getattr(stream, "index", None)
    if type(index).__name__ != "DatetimeIndex":
        return None
    naive = index if index.tz is None else index.tz_convert(None)
    times = np.asarray(naive, dtype="datetime64[us]")
    values = Values.of_numbers(np.where(np.isnat(times), np.nan, times.astype(np.int64) * MICROSECOND), "times")
    return values if index.tz is None else _in_utc(values)


def _has_zone(stream: object, clock: str) -> bool:
    """Whether times name their zone, as strings do by themselves."""
    if isinstance(stream, list | tuple):
        record = as_record(stream[0], (clock,)) or {}
        return getattr(record.get(clock), "tzinfo", None) is not None
    if not is_frame(stream) or isinstance(stream, Table):
        return False
    import narwhals as nw

    frame: Any = nw.from_native(stream, eager_only=True, pass_through=True)
    return getattr(frame.schema.get(clock), "time_zone", None) is not None


def _in_utc(values: Values) -> Values:
    """The same in words, which say that they are in UTC: so all times that name a zone are told."""
    if values.holds != "times":
        return values
    return Values.of_words([moment(seconds, 0, utc=True) for seconds in values.data.tolist()])
