"""Tables with columns of any kind, and the rows of numbers that they become."""

from tocsin._data.tables.column import Column, Kind
from tocsin._data.tables.columns import OTHERS, Columns, ignored_by, must_have, values_of
from tocsin._data.tables.sources import as_record, as_table, is_frame, named_row, one_row, unnamed
from tocsin._data.tables.table import Table, Values, numbered

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
    "is_frame",
    "must_have",
    "named_row",
    "numbered",
    "one_row",
    "unnamed",
    "values_of",
]
