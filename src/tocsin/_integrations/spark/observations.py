"""Observations on their way through Spark: columns of a frame, bundles of rows for each bucket, what detectors take.

Rows travel as Arrow's own bytes, one value for all rows of a bucket. Spark hands Python single rows where there is
state, and would change their names and kinds: `_2` for a name with a blank, floats for whole numbers with gaps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as sql

from tocsin._common.checks import is_whole
from tocsin._common.errors import InputError, Option
from tocsin._compute.arrays import Float64Array
from tocsin._data.intake import Rows, Tabular
from tocsin._detector.detector import Detector

BUNDLED = "bucket long, rows binary"
ROWS_AT_ONCE = 200_000
"""Rows that are sorted into buckets together. More make fewer and larger bundles."""

WHOLE = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
NESTED = (types.ArrayType, types.MapType, types.StructType, types.BinaryType)


@dataclass(frozen=True)
class Layout:
    """Which columns an observation is made of, and in what form a detector takes them.

    form: 'numbers', an array of numbers a row; 'values', the values of one column as they are; 'table', named columns.
    width: of rows of numbers, if it is known.
    """

    form: Literal["numbers", "values", "table"]
    names: tuple[str, ...]
    width: int | None = None
    reset: str | None = None

    def observations(self, table: pa.Table) -> tuple[object, dict[int, str]]:
        """What a detector takes, and what is wrong with rows that it would misjudge."""
        if self.form == "table":
            return table.select([f"x{i}" for i in range(len(self.names))]).rename_columns(list(self.names)), {}
        values = table["x"].combine_chunks()
        if self.form == "values":
            return values.to_pylist(), {}
        return _as_array(values, self.width)

    def row(self, table: pa.Table, place: int) -> str:
        """The values of a row as JSON, under their own names; NaN is written as NaN, which Spark's from_json reads."""
        values = table.slice(place, 1).to_pylist()[0]
        if self.form == "table":
            named = {name: values[f"x{i}"] for i, name in enumerate(self.names)}
        elif len(self.names) == 1:
            named = {self.names[0]: values["x"]}
        else:
            named = dict(zip(self.names, values["x"], strict=True))
        if self.reset is not None:
            named[self.reset] = values["reset"]
        return json.dumps(named, default=str)


def _as_array(values: pa.ListArray, width: int | None) -> tuple[Float64Array, dict[int, str]]:
    """Lists of numbers as an array with a row each; rows that do not fit hold NaN, and a message says what is wrong."""
    lengths = pc.fill_null(pc.list_value_length(values), -1).to_numpy(zero_copy_only=False)
    if width is None:
        width = max(int(np.bincount(np.maximum(lengths, 0)).argmax()), 1)
    inner = values.flatten().to_numpy(zero_copy_only=False)
    fits = lengths == width
    if fits.all():
        return np.ascontiguousarray(inner, dtype=np.float64).reshape(-1, width), {}
    array = np.full((len(lengths), width), np.nan)
    array[fits] = inner[np.repeat(fits, np.maximum(lengths, 0))].reshape(-1, width)
    what = {-1: "no numbers at all"}
    return array, {
        int(i): f"The observation has {what.get(lengths[i], f'{lengths[i]} numbers')}; it must have {width}, as the "
        "reference has. Mend it and send it again."
        for i in np.flatnonzero(~fits)
    }


def layout_for(
    frame: DataFrame,
    detector: Detector | None,
    *,
    key: str,
    order: str,
    columns: str | Sequence[str] | None,
    reset: str | None = None,
) -> Layout:
    """How observations of this frame reach a detector; None: one that is yet to be fitted."""
    intake = None if detector is None else detector.intake_
    single = isinstance(columns, str)
    if isinstance(columns, str):
        names: tuple[str, ...] = (columns,)
    elif columns is not None:
        names = tuple(columns)
    elif isinstance(intake, Tabular):
        names = intake.sources
    elif isinstance(intake, Rows) and intake.labels:
        names = intake.names
    else:
        names = tuple(name for name in frame.columns if name not in (key, order, reset))
    for name in (key, order, *names, *([] if reset is None else [reset])):
        _must_exist(frame, name)
    if not names:
        raise InputError("No column is left for observations. Name them: columns=[...].")
    kinds = [frame.schema[name].dataType for name in names]
    if isinstance(intake, Tabular):
        _must_have_all(names, intake.sources)
        return Layout("table", names, reset=reset)
    if single and isinstance(kinds[0], types.ArrayType):
        return Layout("numbers", names, intake.width if isinstance(intake, Rows) else None, reset)
    if isinstance(intake, Rows):
        _must_be_numbers(names, kinds, intake.width)
        return Layout("numbers", names, intake.width, reset)
    of_values = single and not isinstance(kinds[0], types.NumericType)
    return Layout("values" if of_values else "table", names, reset=reset)


def _must_exist(frame: DataFrame, name: str) -> None:
    if frame.columns.count(name) != 1:
        has = f"has {frame.columns.count(name)}" if name in frame.columns else "has no"
        raise InputError(f"The frame {has} column {name!r}; its columns are {', '.join(map(repr, frame.columns))}.")


def _must_have_all(names: Sequence[str], fitted: Sequence[str]) -> None:
    missing = [name for name in fitted if name not in names]
    if missing:
        raise InputError(
            f"The observations would be made of the columns {', '.join(map(repr, names))}, and the detector was fitted "
            f"to a table that has {missing[0]!r} too. Name it in columns=[...], or rename the frame's columns: "
            "frame.withColumnRenamed(...)."
        )


def _must_be_numbers(names: Sequence[str], kinds: Sequence[types.DataType], width: int) -> None:
    for name, kind in zip(names, kinds, strict=True):
        if not isinstance(kind, types.NumericType | types.BooleanType):
            raise InputError(
                f"Column {name!r} is of type {kind.simpleString()}, and the detector was fitted to rows of numbers. "
                "Name the columns with numbers: columns=[...]; or the one with arrays of numbers: columns='...'."
            )
    if len(names) != width:
        raise InputError(
            f"The observations would be made of {len(names)} columns ({', '.join(names)}), and the detector was fitted "
            f"to rows of {width} numbers. Name as many columns, in the order of the reference: columns=[...]."
        )


def spread(frame: DataFrame, layout: Layout, *, key: str, order: str, buckets: int) -> DataFrame:
    """The frame as bundles of rows: keys as strings, orders as whole numbers, and observations, by bucket."""
    name = sql.col(_quoted(key))
    chosen = [
        _bucket(frame, key, name, buckets).alias("bucket"),
        name.cast("string").alias("key"),
        order_of(frame, order).alias("order"),
    ]
    if layout.reset is not None:
        if not isinstance(frame.schema[layout.reset].dataType, types.BooleanType):
            kind = frame.schema[layout.reset].dataType.simpleString()
            raise InputError(f"reset={layout.reset!r} is of type {kind}; it must hold true where a new run begins.")
        chosen.append(sql.coalesce(sql.col(_quoted(layout.reset)), sql.lit(False)).alias("reset"))
    observed = [sql.col(_quoted(column)) for column in layout.names]
    if layout.form == "table":
        chosen += [column.alias(f"x{i}") for i, column in enumerate(observed)]
    elif layout.form == "values":
        chosen.append(observed[0].alias("x"))
    elif isinstance(frame.schema[layout.names[0]].dataType, types.ArrayType):
        chosen.append(observed[0].cast("array<double>").alias("x"))
    else:
        chosen.append(sql.array(*(column.cast("double") for column in observed)).alias("x"))
    return frame.select(*chosen).mapInArrow(by_bucket, BUNDLED)


def _bucket(frame: DataFrame, key: str, name: Column, buckets: int) -> Column:
    kind = frame.schema[key].dataType
    if isinstance(kind, NESTED):
        raise InputError(
            f"key={key!r} is of type {kind.simpleString()}; keys must be values that a text tells apart. Make one text "
            "of it, such as concat_ws('/', 'site', 'machine')."
        )
    if not is_whole(buckets, 1):
        raise InputError(Option("buckets", buckets), " must be a whole number from 1 on.")
    return sql.pmod(sql.xxhash64(sql.coalesce(name.cast("string"), sql.lit(""))), sql.lit(int(buckets)))


def order_of(frame: DataFrame, order: str) -> Column:
    """The order of observations within a key as whole numbers."""
    kind, column = frame.schema[order].dataType, sql.col(_quoted(order))
    if isinstance(kind, WHOLE):
        return column.cast("long")
    if isinstance(kind, types.TimestampType):
        return sql.unix_micros(column)
    if isinstance(kind, types.TimestampNTZType):
        # Not through the session's time zone, in which some hours come twice.
        return sql.expr(f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {_quoted(order)})")
    raise InputError(
        f"order={order!r} is of type {kind.simpleString()}; it must be a whole number or a timestamp that grows within "
        "each key, such as a sequence number, an offset or the time of measurement: rows of a micro-batch come in any "
        "order, and are sorted by it."
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def by_bucket(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows sorted into buckets: the number of a bucket, and its rows in Arrow's bytes."""
    for table in _gathered(batches):
        bucket = table["bucket"].to_numpy()
        place = np.argsort(bucket, kind="stable")
        rows = table.drop_columns(["bucket"]).take(pa.array(place)).combine_chunks().to_batches()[0]
        begins = np.flatnonzero(np.diff(bucket[place], prepend=-1))
        ends = np.append(begins[1:], len(bucket))
        bundles = [_in_bytes(rows.slice(begin, end - begin)) for begin, end in zip(begins, ends, strict=True)]
        yield pa.RecordBatch.from_arrays(
            [pa.array(bucket[place][begins], pa.int64()), pa.array(bundles, pa.binary())], ["bucket", "rows"]
        )


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _in_bytes(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def rows_of(bundles: Sequence[bytes]) -> pa.Table:
    """The rows of a bucket."""
    return pa.concat_tables([pa.ipc.open_stream(bundle).read_all() for bundle in bundles])
