"""Small tables of every library and kind, and what is learned from them."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._data.tables import Columns, Table, Values, as_table

pandas: Any = import_module("pandas")
polars: Any = import_module("polars")
arrow: Any = import_module("pyarrow")

UTC = datetime.UTC
NOON = datetime.datetime(2024, 3, 7, 12, 30, 15)
HOUR = datetime.timedelta(hours=1)
SECONDS = (NOON - datetime.datetime(1970, 1, 1)).total_seconds()

LIBRARIES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "pandas": lambda columns: pandas.DataFrame(columns),
    "polars": lambda columns: polars.DataFrame(columns, strict=False),
    "arrow": lambda columns: arrow.table(columns),
    "record batch": lambda columns: arrow.RecordBatch.from_pydict(columns),
    "records": lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
}


def table(data: Any) -> Table:
    """What must be a table."""
    found = as_table(data)
    assert found is not None
    return found


def column(data: Any) -> Values:
    """The only column of a table."""
    ((_, values),) = table(data)
    return values


def of(columns: Mapping[str, Any], kinds: Mapping[str, Any] | None = None) -> Columns:
    """What is learned from columns of Python objects."""
    return Columns.learn(table(LIBRARIES["records"](columns)), kinds)


def rows(columns: Columns, **values: Any) -> Float64Array:
    """Features of a table, given as columns."""
    return columns.encode(table(LIBRARIES["records"](values)))


def mixed(n: int, seed: int = 0) -> dict[str, list[Any]]:
    """A column of every kind, three of them with gaps."""
    rng = np.random.default_rng(seed)
    gap = rng.random(n) < 0.2
    return {
        "flow": rng.normal(5, 2, n).tolist(),
        "count": rng.poisson(3, n).tolist(),
        "level": [None if gone else x for gone, x in zip(gap, rng.normal(size=n).tolist(), strict=True)],
        "open": [None if gone else x for gone, x in zip(gap, (rng.random(n) < 0.3).tolist(), strict=True)],
        "state": [
            None if gone else x for gone, x in zip(gap, rng.choice(["on", "off", "idle"], n).tolist(), strict=True)
        ],
        "seen": [NOON + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 10**7, n)],
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 300, n)],
        "took": [datetime.timedelta(seconds=float(s)) for s in rng.integers(1, 1000, n)],
        "price": [decimal.Decimal(int(c)) / 4 for c in rng.integers(1, 10**4, n)],  # Arrow rounds hundredths otherwise
        "note": [f"item {i} of {rng.integers(10**6)}" for i in range(n)],
    }
