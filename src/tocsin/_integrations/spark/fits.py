"""`fit`: a detector for each key, many small fits side by side."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from tocsin._common.errors import InputError, ReferenceWarning
from tocsin._detector.detector import Detector
from tocsin._integrations.spark.observations import Layout, layout_for, rows_of, spread
from tocsin._integrations.spark.sessions import frame_must_be
from tocsin._integrations.spark.shipping import file_of

FITTED = "key string, file string, points long, threshold double, warning string, problem string"
LARGEST_SEED = 2**63
GROUPS = 10_000
"""Over which keys are spread; those of a group are fitted one after the other."""


def fit(
    frame: DataFrame,
    detector: Detector,
    *,
    key: str,
    order: str,
    folder: str | os.PathLike[str],
    columns: str | Sequence[str] | None = None,
) -> DataFrame:
    """Fit a detector to the rows of each key, and write each to a file in a folder that `watch` takes.

    It runs at once. The answer has a row for each key: its file, how many points it was fitted to, its threshold, what
    the fit warned of, and the problem if there was one; such a key has no file.

    Parameters
    ----------
    frame
        Observations from the time when all was well; not streaming.
    detector
        The options of all fits: a `tocsin.Detector` that need not be fitted. With a `seed`, each key has one of its own
        that follows from it.
    key, order, columns
        As in `watch`.
    folder
        Where the files go: a folder that all machines can write to.
    """
    spark = frame_must_be(frame, "fit", streaming=False)
    if not isinstance(detector, Detector):
        raise InputError(
            f"detector={detector!r} is a {type(detector).__name__}; give the options of all fits: Detector(...)."
        )
    layout = layout_for(frame, None, key=key, order=order, columns=columns)
    target = Path(folder).resolve()
    target.mkdir(parents=True, exist_ok=True)
    bundles = spread(frame, layout, key=key, order=order, buckets=GROUPS)
    options = _afresh(detector, detector.seed)
    fitted = bundles.groupBy("bucket").applyInPandas(_fits(options, layout, str(target)), FITTED)
    # Collected: a frame that is not would fit again whenever it is looked at.
    return spark.createDataFrame(fitted.collect(), FITTED).orderBy(sql.col("key"))


def _afresh(detector: Detector, seed: int | None) -> Detector:
    """One with the same options and this seed, and without what the other has learned."""
    return Detector(**detector.get_params()).set_params(seed=seed)


def _fits(options: Detector, layout: Layout, folder: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def fitted(bundles: pd.DataFrame) -> pd.DataFrame:
        table = rows_of(list(bundles["rows"]))
        table = table.filter(table["key"].is_valid()).sort_by([("key", "ascending"), ("order", "ascending")])
        keys = table["key"].combine_chunks().to_numpy(zero_copy_only=False)
        begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
        ends = [*begins[1:], len(keys)]
        answers = [
            _fit_one(options, layout, folder, str(keys[begin]), table.slice(begin, end - begin))
            for begin, end in zip(begins, ends, strict=True)
        ]
        return pd.DataFrame(answers, columns=[column.split()[0] for column in FITTED.split(", ")], dtype=object)

    return fitted


def _fit_one(
    options: Detector, layout: Layout, folder: str, key: str, rows: pa.Table
) -> tuple[str | float | None, ...]:
    """A row of the answer."""
    observations, wrong = layout.observations(rows)
    seed = options.seed
    if seed is not None:
        digest = blake2b(f"{seed} {key}".encode(), digest_size=8).digest()
        seed = int.from_bytes(digest, "little") % LARGEST_SEED
    detector = _afresh(options, seed)
    file = file_of(folder, key)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReferenceWarning)
        try:
            if wrong:
                raise InputError(next(iter(wrong.values())))
            detector.fit(observations, workers=1, progress=False)
        except InputError as error:
            file.unlink(missing_ok=True)
            return key, None, len(rows), None, None, str(error)
    detector.save(file)
    said = " ".join(str(warning.message) for warning in caught if issubclass(warning.category, ReferenceWarning))
    return key, str(file), len(rows), float(detector.calibration_.threshold), said or None, None
