"""Tables from what people hold: data frames of any library, Arrow tables, lists of records; and single rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np

from tocsin._common.errors import InputError, MissingExtraError
from tocsin._common.wording import counted, shown
from tocsin._data.foreign import is_collection
from tocsin._data.tables.table import Table, Values

if TYPE_CHECKING:
    import narwhals
    from narwhals.typing import IntoSeries

FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf")
"""Libraries whose frames are read, if they are in use."""

TEXT = "text"
"""What the only column of a list of strings is called."""

Skips = Callable[[str], bool]
"""Whether a column, by its name, is to be left unread."""

Record = Mapping[Any, object]
"""Values by their names, which may be anything: so are the labels of a Series, or the keys of a dict."""

Expected = Mapping[str, bool]
"""The columns of a reference, and whether a record may lack each: it may where the reference has gaps."""


def _skips_none(name: str) -> bool:
    return False


def as_table(data: object, skips: Skips = _skips_none, expected: Expected | None = None) -> Table | None:
    """The table that `data` is; None if it is something else.

    skips: which columns to leave unread; they are there, and hold nothing.
    expected: where `data` is from a stream, the columns that it should have.
    """
    if isinstance(data, Table):
        return data
    # A column that comes without a table has the name that is expected.
    only = next(iter(expected)) if expected and len(expected) == 1 else None
    if _is_of_library(data):
        return from_frame(data, skips, only)
    if isinstance(data, list | tuple) and not hasattr(data, "_asdict"):
        first = next((item for item in data if item is not None), None)
        if as_record(first) is not None:
            return from_records(data, skips, expected)
        if isinstance(first, str):
            return Table({only or TEXT: Values.of_objects(data, only or TEXT)})
    return None


def is_frame(data: object) -> bool:
    """Whether it is a table or a data frame, rather than a series or something else."""
    return isinstance(data, Table) or (_is_of_library(data) and hasattr(type(data), "columns"))


def _is_of_library(data: object) -> bool:
    """Whether its class, or one that this is made from, is of one of the libraries that have frames."""
    return any(base.__module__.split(".")[0] in FRAMES for base in type(data).__mro__)


def unnamed(block: object, names: Sequence[str]) -> Table:
    """Rows of values in the order of the columns: an array, or a list of rows."""
    try:
        array = np.asarray(block, dtype=None if isinstance(block, np.ndarray) else object)
    except ValueError:
        array = np.empty(len(block) if is_collection(block) else (), dtype=object)
    if array.ndim == 1 and len(names) == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != len(names):
        raise InputError(
            f"The block has shape {array.shape}; the reference has {counted(len(names), 'column')}, and each row must "
            "have as many values. Give them in the order of the columns, or by name: a data frame, or a list of dicts. "
            "For a single observation use update."
        )
    if array.dtype.kind in "iuf":
        return Table({name: Values.of_numbers(array[:, i]) for i, name in enumerate(names)})
    # Python's own times know no nanoseconds: tolist would make numbers of such.
    listed = list if array.dtype.kind in "mM" else np.ndarray.tolist
    return Table({name: Values.of_objects(listed(array[:, i]), name) for i, name in enumerate(names)})


def one_row(x: object, expected: Expected | None = None, skips: Skips = _skips_none) -> Table:
    """One observation: a mapping, a frame of one row, a Series with names, or values in the order of the columns."""
    row = named_row(x, tuple(expected or ()), skips)
    return row if isinstance(row, Table) else from_records([row], skips, expected)


def named_row(x: object, names: Sequence[str], skips: Skips = _skips_none) -> Table | Record:
    """One observation as a table of one row, if it is a frame, or as a record."""
    if is_frame(x):
        frame = x if isinstance(x, Table) else from_frame(x, skips)
        if len(frame) != 1:
            raise InputError(f"update takes one observation, and got {len(frame)} rows; use update_many for several.")
        return frame
    record = as_record(x, names)
    if record is not None:
        return record
    given = [x] if isinstance(x, str | bytes) or not is_collection(x) else x
    if len(given) == 1 and isinstance(inner := next(iter(given)), list | tuple | np.ndarray):
        given = [inner.item()] if isinstance(inner, np.ndarray) and inner.ndim == 0 else inner
    values = given.tolist() if isinstance(given, np.ndarray) and given.dtype.kind not in "mM" else list(given)
    if len(values) != len(names):
        raise InputError(
            f"The observation has {counted(len(values), 'value')}; the reference has "
            f"{counted(len(names), 'column')}, and it must have as many. Give them in the order of the columns, or by "
            "name: a dict. For several observations use update_many."
        )
    return dict(zip(names, values, strict=True))


def as_record(x: object, names: Sequence[str] = ()) -> Record | None:
    """The names and values of a mapping, a named tuple, or a Series whose index has names; else None."""
    if isinstance(x, Mapping):
        return x
    if isinstance(x, tuple):
        record: Record | None = x._asdict() if hasattr(x, "_asdict") else None
        return record
    if not _is_labelled(x):
        return None
    labels = list(x.index)
    named = any(isinstance(label, str) or str(label) in names for label in labels)
    return dict(zip(labels, x, strict=True)) if named else None


class Labelled(Protocol):
    """A Series whose values have labels, as pandas has them."""

    @property
    def index(self) -> Iterable[object]: ...

    def __iter__(self) -> Iterator[object]: ...


def _is_labelled(x: object) -> TypeGuard[Labelled]:
    index = getattr(x, "index", None) if _is_of_library(x) and not is_frame(x) else None
    return index is not None and not callable(index)


def from_records(records: Sequence[object], skips: Skips = _skips_none, expected: Expected | None = None) -> Table:
    """From mappings of column names to values; a name that a record lacks is a missing value there, if it may be."""
    rows = [_with_names(i, record, records[0]) for i, record in enumerate(records)]
    names = dict.fromkeys(name for row in rows for name in row)
    if expected is not None:
        for i, row in enumerate(rows):
            if not row.keys() >= expected.keys():
                _must_be_optional(i, row, skips, expected)
        names |= dict.fromkeys(expected)
    return Table(
        {
            name: _unread(len(rows)) if skips(name) else Values.of_objects([row.get(name) for row in rows], name)
            for name in names
        }
    )


def _with_names(row: int, given: object, first: object) -> Mapping[str, object]:
    record = as_record(given)
    if record is None:
        raise InputError(
            f"Row {row + 1} (index {row}) is a {type(given).__name__} such as {shown(given)}, and other rows are of "
            f"type {type(first).__name__}, with names for their values; all must be. Mend the row, or leave it out."
        )
    return record if all(type(name) is str for name in record) else {str(name): record[name] for name in record}


def _must_be_optional(row: int, record: Mapping[str, object], skips: Skips, expected: Expected) -> None:
    """What a record of a stream lacks."""
    lacking = [name for name, optional in expected.items() if not optional and name not in record]
    if lacking:
        extra = [name for name in record if name not in expected and not skips(name)]
        has = f", and has {', '.join(map(repr, extra))} besides" if extra else ""
        raise InputError(
            f"Row {row + 1} (index {row}) lacks {', '.join(map(repr, lacking))}{has}; rows must have the columns of "
            "the reference, in any order. Rename or add them; where a value is missing, say so by None."
        )


def _unread(count: int) -> Values:
    return Values("nothing", np.full(count, np.nan))


def from_frame(data: object, skips: Skips = _skips_none, only: str | None = None) -> Table:
    """From a data frame of any library, or from a series, which is then called `only` if that is given."""
    try:
        import narwhals as nw
    except ImportError as error:
        raise MissingExtraError("narwhals", "data", "Reading data frames") from error
    if type(data).__name__ == "RecordBatch":
        data = sys.modules["pyarrow"].Table.from_batches([data])
    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as error:
        told = " ".join(str(error).split())
        raise InputError(
            f"Columns of the table have the same name ({told}); names must differ. Rename them."
        ) from error
    if isinstance(frame, nw.Series):
        name = only or ("1" if frame.name in (None, "") else str(frame.name))
        return Table({name: _values(frame, name)})
    if not isinstance(frame, nw.DataFrame):
        kind = f"{type(data).__module__.split('.')[0]} {type(data).__name__}"
        raise InputError(f"A {kind} is not a table in memory; collect it to a DataFrame first.")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"The table has two columns called {twice!r}; names must be different. Rename one.")
    return Table(
        {
            name: _unread(len(series)) if skips(name) else _values(series, name)
            for name, series in zip(names, frame.iter_columns(), strict=True)
        }
    )


def _values(series: narwhals.Series[IntoSeries], name: str) -> Values:
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric():
        return Values.of_numbers(series.cast(nw.Float64).to_numpy())
    if dtype == nw.Boolean:
        return Values.of_numbers(series.cast(nw.Float64).to_numpy(), "truth values")
    if dtype == nw.Date:
        series, dtype = series.cast(nw.Datetime("us")), nw.Datetime("us")
    if isinstance(dtype, nw.Datetime):
        return Values.of_numbers(series.dt.timestamp("us").cast(nw.Float64).to_numpy() / 1e6, "times")
    if isinstance(dtype, nw.Duration):
        return Values.of_numbers(series.dt.total_microseconds().cast(nw.Float64).to_numpy() / 1e6)
    values = Values.of_objects(series.to_list(), name)
    return Values(values.holds, values.data, named=dtype in (nw.Categorical, nw.Enum))
