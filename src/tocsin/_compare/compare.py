"""`tocsin.compare`: do these two tables differ?"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tocsin._common.checks import is_finite
from tocsin._common.errors import InputError, Option
from tocsin._common.seeds import Purpose, generator
from tocsin._compare.result import Comparison
from tocsin._data import validation
from tocsin._data.tables import Kind
from tocsin._execution.progress import progress_bar
from tocsin._statistics.kernels import median_distance
from tocsin._statistics.mmd import FAMILY

MOST_ROWS, FEWEST_ROWS = 20_000, 2000
"""Rows that are compared at most, and that are however rare the verdict is to be."""

MOST_SPLITS, SPLITS = 10_000, 10
"""Splits at most, and how many times `ert` if work allows: more of them waste less of what the rows can tell."""

WORK = 4 * 10**11
"""Multiplications, roughly: seconds on a few cores."""

WIDTHS, COIN = 1, 2
"""Parts of a comparison that draw at random."""


def compare(
    reference: object,
    batch: object,
    *,
    ert: float = 100,
    kinds: Mapping[str, Kind] | None = None,
    seed: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Whether two tables differ; when nothing differs, it says that they do once in `ert` comparisons on average.

    Parameters
    ----------
    reference, batch
        Rows, as `Detector.fit` takes them: data frames, lists of dicts or strings, arrays, sparse matrices. Where rows
        depend on those before them, give both in the order in which they came. Of more than 20,000 rows together (or
        fewer, if `ert` is above 100) some are drawn evenly, and the result says how many.
    ert
        Comparisons between false verdicts, on average.
    kinds
        Kinds of columns that are not what they seem, as for a `Detector`.
    seed
        Whole number for a reproducible answer; None for a fresh one, kept in the result.
    progress
        Whether to show a progress bar on standard error; by default, on a terminal when it takes long.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> answer = compare(rng.normal(size=(300, 2)), rng.normal(size=(100, 2)) + [0, 1], seed=1)
    >>> answer.differs, [column.name for column in answer.changed]
    (True, ['2'])
    """
    # These need scipy, which watching does not.
    from tocsin._compare.columns import ColumnScores
    from tocsin._compare.pooling import pool
    from tocsin._compare.splits import block_length, draw_splits, ways
    from tocsin._compare.statistic import RAREST, discrepancies, largest, rarity

    ert, seed = _comparisons(ert), validation.seed_number(seed)
    pooled = pool(reference, batch, kinds, _most_rows(ert))
    widths: tuple[float, ...] = (1.0,)
    if (pooled.points != pooled.points[0]).any():
        median = median_distance(pooled.points, generator(seed, Purpose.COMPARE, WIDTHS))
        widths = tuple(sorted((median * factor for factor in FAMILY.factors), reverse=True))
        block = block_length(pooled, median, seed)
    else:
        block = 1
    reach = float(min(ways(pooled, block), RAREST))
    # Where a block does not even fit into a table there is one way, whatever the rows are.
    pooled = pooled.in_blocks(block) if reach > 1 else pooled
    splits = draw_splits(pooled, block if reach > 1 else 1, _splits(ert, len(pooled.points)), seed)
    with progress_bar("comparing", progress) as report:
        values = discrepancies(pooled.points, widths, splits, report)
    columns = ColumnScores(pooled, splits)
    statistics = largest(np.vstack([values, columns.largest]))
    rare, extrapolated = rarity(statistics, float(generator(seed, Purpose.COMPARE, COIN).random()))
    rare, differs = min(rare, reach), min(rare, reach) >= ert
    return Comparison(
        differs=differs,
        rarity=rare,
        ert=ert,
        extrapolated=extrapolated,
        reach=reach,
        reference_rows=pooled.count,
        batch_rows=pooled.others,
        reference_given=pooled.given[0],
        batch_given=pooled.given[1],
        block=block,
        splits=splits.shape[1],
        columns=columns.told(differ=differs),
        seed=seed,
        tables=pooled.tables,
    )


def _comparisons(ert: object) -> float:
    if not is_finite(ert) or ert < 2 or ert > 1e9:
        raise InputError(
            Option("ert", ert), ": must be a number of comparisons between false verdicts, from 2 up to 1e9."
        )
    return float(ert)


def _most_rows(ert: float) -> int:
    """So that enough splits for a verdict can be looked at."""
    return int(np.clip(math.sqrt(WORK / (10 * min(ert, MOST_SPLITS))), FEWEST_ROWS, MOST_ROWS))


def _splits(ert: float, rows: int) -> int:
    """A multiple of `ert`, so that as many of them as that are the rarest: then the promise is exact."""
    whole = math.ceil(ert)
    if whole > MOST_SPLITS:
        return MOST_SPLITS
    return whole * max(min(SPLITS, MOST_SPLITS // whole, int(WORK / (10 * rows**2 * whole))), 1)
