"""Tables with columns of any kind, and the rows of numbers that they become."""

from tocsin._data.tables.column import Column, Kind
from tocsin._data.tables.columns import (
    OTHERS,
    Columns,
    ignored_by,
    is_clock,
    kind_given,
    must_have,
    values_of,
    with_times,
)
from tocsin._data.tables.sources import as_record, as_table, is_frame, named_row, one_row, unnamed
from tocsin._data.tables.table import Table, Values, numbered
from tocsin._data.tables.words import look_like_dates, times_in

__all__ = [
    "OTHERS",
    "Column",
    "Columns",
    "Kind",
    "Table",
    "Values",
    "as_record",
    "as_table",
    "ignored_by",
    "is_clock",
    "is_frame",
    "kind_given",
    "look_like_dates",
    "must_have",
    "named_row",
    "numbered",
    "one_row",
    "times_in",
    "unnamed",
    "values_of",
    "with_times",
]
