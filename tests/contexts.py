"""Streams with a context, and detectors that know of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin import Detector
from tocsin._compute.arrays import Float64Array

GIVEN = ["load", "customer"]
CUSTOMERS = ("new", "old", "trade")
EXTRA = np.array([0.0, 2.0, -3.0])
"""What is expected of each kind of customer besides."""

Record = dict[str, Any]


def records(seed: int, count: int, load: float = 0.0, up: float = 0.0) -> list[Record]:
    """Rows of which `x` depends on load and customer, `y` on nothing, and `kind` on the load."""
    rng = np.random.default_rng(seed)
    loads, kinds = rng.normal(load, 1, count), rng.integers(3, size=count)
    x = 2 * loads + EXTRA[kinds] + rng.normal(size=count) + up
    red = rng.random(count) < 1 / (1 + np.exp(-2 * loads))
    return [
        {"load": own, "customer": CUSTOMERS[k], "x": value, "y": other, "kind": "red" if is_red else "blue"}
        for own, k, value, other, is_red in zip(loads, kinds, x, rng.normal(size=count), red, strict=True)
    ]


def strange(rows: list[Record]) -> list[Record]:
    """Some of whose contexts no reference has: a level, a number far out, a gap, and one that is not there."""
    rows = [dict(row) for row in rows]
    rows[3]["customer"], rows[4]["load"], rows[10]["load"] = "never", 99.0, None
    del rows[11]["customer"]
    return rows


STRANGE = [3, 4, 10, 11]


def fitted(seed: int = 1, rows: list[Record] | None = None, **options: Any) -> Detector:
    """To 400 rows, or to these."""
    own: dict[str, Any] = {"ert": 200, "given": GIVEN, "window": 10, "interval": False, "seed": seed} | options
    return Detector(**own).fit(records(0, 400) if rows is None else rows)


def numbers(rows: list[Record], name: str) -> Float64Array:
    """A column."""
    return np.array([row[name] for row in rows], np.float64)
