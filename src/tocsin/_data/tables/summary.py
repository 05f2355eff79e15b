"""What the values of a column are like, in a few words: before a change, and after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._data.tables.column import DAY, NUMERIC, Column, Value

FEW = 3
"""Categories that are named."""

DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
"""Of the week in which 1970 began."""

SOME_PREFERENCE = 0.3
"""Times that agree less are all over the day; the length of the mean of points on a circle."""


def compare(
    column: Column, before: Sequence[Value], after: Sequence[Value], features: tuple[Float64Array, Float64Array]
) -> tuple[str, str]:
    """Two samples of values, as `Columns.decode` gives them, in words that can be compared.

    features: what the column makes of either sample, (n, width); of texts nothing else is left.
    """
    gaps = [sum(value is None for value in values) / max(len(values), 1) for values in (before, after)]
    first, second = ([value for value in values if value is not None] for values in (before, after))
    if column.kind in NUMERIC:
        words = [numbers(np.array(values)) for values in (first, second)]
    elif column.kind == "category":
        words = _categories(first, second)
    elif column.kind == "time":
        words = [_times(np.array(values)) for values in (first, second)]
    else:
        words = texts(*features)
    if max(gaps) > 0:
        words = [f"{word}, {gap:.0%} missing" for word, gap in zip(words, gaps, strict=True)]
    return words[0], words[1]


def numbers(values: Float64Array) -> str:
    """The median, and where the middle half is.

    >>> numbers(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    'median 3 (2 to 4)'
    """
    if not len(values):
        return "none"
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"median {middle:.3g} ({low:.3g} to {high:.3g})"


def texts(before: Float64Array, after: Float64Array) -> list[str]:
    """How alike texts are by their n-grams: those before to each other, those after to those before.

    before, after: vectors of length 1, or 0 for a text that is missing or empty.

    >>> texts(np.eye(2)[[0, 0, 1]], np.eye(2)[[1, 1]])
    ['texts (mean cosine 0.33 to each other)', 'texts (0.33 to those before)']
    """
    first, second = (vectors[vectors.any(1)] for vectors in (before, after))
    total, count = first.sum(0), len(first)
    own = (total @ total - count) / (count * (count - 1)) if count > 1 else np.nan
    new = (second @ total).mean() / count if count and len(second) else np.nan
    words = (f"mean cosine {own:.2f} to each other", own), (f"{new:.2f} to those before", new)
    return ["texts" if np.isnan(cosine) else f"texts ({said})" for said, cosine in words]


def _categories(before: Sequence[float | str], after: Sequence[float | str]) -> list[str]:
    """Shares of the categories that moved most, then of the commonest."""
    shares = [{word: count / len(values) for word, count in Counter(values).items()} for values in (before, after)]
    names = sorted(
        {*shares[0], *shares[1]},
        key=lambda name: (-abs(shares[0].get(name, 0) - shares[1].get(name, 0)), -shares[0].get(name, 0)),
    )[:FEW]
    return [", ".join(f"{name} {share.get(name, 0):.0%}" for name in names) or "none" for share in shares]


def _times(values: Float64Array) -> str:
    """The hour around which times of the day lie, if there is one."""
    if not len(values):
        return "none"
    mean = np.exp(2j * np.pi * values / DAY).mean()
    if abs(mean) < SOME_PREFERENCE:
        return "all over the day"
    return f"around {clock(float(np.angle(mean) / (2 * np.pi) % 1 * DAY))}"


def clock(seconds: float) -> str:
    """Time of day.

    >>> clock(3 * 3600 + 25 * 60)
    '03:25'
    """
    minutes = round(seconds / 60) % 1440
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def shown(column: Column, value: Value) -> str:
    """One value."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return value
    return f"{DAYS[int(value // DAY)]} {clock(value % DAY)}" if column.kind == "time" else f"{value:.4g}"
